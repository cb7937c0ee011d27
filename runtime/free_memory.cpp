#include "runtime/free_memory.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <sstream>

namespace runtime {

using costmodel::Bytes;

namespace fs = std::filesystem;

namespace {

std::string text_of(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// "max" is none.
std::optional<double> number_in(const fs::path& path) {
  std::ifstream file(path);
  double value = 0;
  return file >> value ? std::optional(value) : std::nullopt;
}

// What the kernel takes back as soon as somebody wants it: files' pages, and its own caches.
double reclaimable(const fs::path& statistics) {
  double sum = 0;
  std::ifstream file(statistics);
  double bytes = 0;
  for (std::string key; file >> key >> bytes;)
    if (key == "inactive_file" || key == "active_file" || key == "slab_reclaimable") sum += bytes;
  return sum;
}

// Of one group; nothing where it has no limit.
std::optional<Bytes> left_in(const fs::path& folder) {
  const auto most = number_in(folder / "memory.max"), held = number_in(folder / "memory.current");
  if (!most || !held) return std::nullopt;
  const double used = std::max(0.0, *held - reclaimable(folder / "memory.stat"));
  return Bytes(std::max(0.0, *most - used));
}

// The line "0::/path" of /proc/self/cgroup.
fs::path own_group() {
  std::istringstream lines(text_of("/proc/self/cgroup"));
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("0::/")) return line.substr(4);
  return {};
}

}  // namespace

std::optional<Bytes> available_memory(const std::string& meminfo) {
  constexpr std::string_view key = "MemAvailable:";
  const auto at = meminfo.find(key);
  if (at == std::string::npos) return std::nullopt;
  std::istringstream rest(meminfo.substr(at + key.size()));
  double kilobytes = 0;
  if (!(rest >> kilobytes)) return std::nullopt;
  return Bytes(kilobytes * 1024);
}

std::optional<Bytes> group_memory(const fs::path& root, fs::path group) {
  std::optional<Bytes> least;
  for (;; group = group.parent_path()) {
    if (const auto left = left_in(root / group)) least = least ? min(*least, *left) : left;
    if (group.empty()) return least;
  }
}

std::optional<Bytes> free_memory() {
  const auto machine = available_memory(text_of("/proc/meminfo"));
  const auto group = group_memory("/sys/fs/cgroup", own_group());
  if (machine && group) return min(*machine, *group);
  return machine ? machine : group;
}

}  // namespace runtime
