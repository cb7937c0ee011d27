#include "runtime/run/free_memory.hpp"

#include <algorithm>
#include <array>
#include <sstream>
#include <string_view>

#include "costmodel/base/input_file.hpp"
#include "costmodel/base/path.hpp"
#include "costmodel/plan/mesh.hpp"

namespace runtime {

using namespace costmodel;

namespace {

// "max" means no limit.
std::optional<double> number_in(const std::string& path) {
  std::istringstream file(system_text(path));
  double value = 0;
  return file >> value ? std::optional(value) : std::nullopt;
}

// The file names of a version of control groups.
struct GroupFiles {
  const char *limit, *used;
  std::array<std::string_view, 3> reclaimable;  // in memory.stat; "": none
};
constexpr std::array<GroupFiles, 2> versions{
    {{"memory.max", "memory.current", {"inactive_file", "active_file", "slab_reclaimable"}},
     {"memory.limit_in_bytes",
      "memory.usage_in_bytes",
      {"total_inactive_file", "total_active_file", ""}}}};
constexpr double no_limit = 0x1p62;  // version 1 writes the last page below 2^63

// Memory that the kernel reclaims on demand: file pages and its own caches.
double reclaimable(const std::string& statistics, const GroupFiles& names) {
  double sum = 0, bytes = 0;
  std::istringstream file(system_text(statistics));
  for (std::string key; file >> key >> bytes;)
    if (std::ranges::find(names.reclaimable, key) != names.reclaimable.end()) sum += bytes;
  return sum;
}

// What one group leaves; nothing when it has no limit.
std::optional<Bytes> left_in(const std::string& folder, const GroupFiles& names) {
  const auto most = number_in(joined_path(folder, names.limit)),
             held = number_in(joined_path(folder, names.used));
  if (!most || !held || *most >= no_limit) return std::nullopt;
  const double used = std::max(0.0, *held - reclaimable(joined_path(folder, "memory.stat"), names));
  return Bytes(std::max(0.0, *most - used));
}

// The smaller of the two; nothing means unlimited.
std::optional<Bytes> smaller(std::optional<Bytes> one, std::optional<Bytes> other) {
  if (one && other) return min(*one, *other);
  return one ? one : other;
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

std::vector<ControlGroup> memory_groups(const std::string& text) {
  std::vector<ControlGroup> groups;
  std::istringstream lines(text);
  std::string number, controllers, path;
  while (std::getline(lines, number, ':') && std::getline(lines, controllers, ':') &&
         std::getline(lines, path)) {
    if (!path.starts_with('/')) continue;
    const bool memory = ("," + controllers + ",").find(",memory,") != std::string::npos;
    if (controllers.empty()) groups.push_back({"/sys/fs/cgroup", path.substr(1)});
    if (memory) groups.push_back({"/sys/fs/cgroup/memory", path.substr(1)});
  }
  return groups;
}

std::optional<Bytes> group_memory(const ControlGroup& of) {
  std::optional<Bytes> least;
  for (std::string group = of.path;; group = folder_of(group)) {
    for (const GroupFiles& names : versions)
      least = smaller(least, left_in(joined_path(of.root, group), names));
    if (group.empty()) return least;
  }
}

std::optional<Bytes> free_memory() {
  auto least = available_memory(system_text("/proc/meminfo"));
  for (const ControlGroup& group : memory_groups(system_text("/proc/self/cgroup")))
    least = smaller(least, group_memory(group));
  return least;
}

namespace {

// For stages with devices of their own: their ranks are consecutive, in the order of the stages.
Bytes memory_by_stage(const Estimate& predicted, const std::vector<int>& ranks) {
  Bytes sum;
  std::int64_t first = 0;
  for (std::size_t k = 0; k < predicted.meshes.size(); ++k) {
    const std::int64_t end = first + predicted.meshes[k].devices;
    const auto count =
        std::ranges::count_if(ranks, [&](int rank) { return rank >= first && rank < end; });
    sum += predicted.memory[k].total() * static_cast<double>(count);
    first = end;
  }
  return sum;
}

}  // namespace

Bytes memory_of_ranks(const Estimate& predicted, const std::vector<int>& ranks) {
  if (!predicted.meshes.empty()) return memory_by_stage(predicted, ranks);
  const Mesh mesh(predicted.plan);
  Bytes sum;
  for (const int rank : ranks) {
    if (rank >= mesh.size()) continue;
    sum += predicted.memory[static_cast<std::size_t>(mesh.coordinates(rank).pp)].total();
  }
  return sum;
}

}  // namespace runtime
