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
    const fs::path folder = root / group;
    const auto most = number_in(folder / "memory.max"), used = number_in(folder / "memory.current");
    if (most && used) {
      const Bytes left(std::max(0.0, *most - *used));
      least = least ? min(*least, left) : left;
    }
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
