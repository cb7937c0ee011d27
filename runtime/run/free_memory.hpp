// How much memory a process may still take on this machine, and how much ranks want.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "costmodel/base/units.hpp"
#include "costmodel/estimate/evaluator.hpp"

namespace runtime {

// MemAvailable of /proc/meminfo's text; nothing where that line is missing.
std::optional<costmodel::Bytes> available_memory(const std::string& meminfo);

// Where a control group's memory is told of.
struct ControlGroup {
  std::filesystem::path root;  // where groups are mounted
  std::filesystem::path path;  // below it
};

// Of /proc/self/cgroup's text: the group of version 2, and of version 1 that for memory.
std::vector<ControlGroup> memory_groups(const std::string& text);

// What a control group and all above it leave, the smallest: its limit (memory.max, in version 1
// memory.limit_in_bytes) less what is used, which is memory.current (memory.usage_in_bytes) without
// what memory.stat says can be reclaimed at once (pages of files, the kernel's caches). Nothing
// where no group has a limit.
std::optional<costmodel::Bytes> group_memory(const ControlGroup& group);

// The smallest of all these for this process; nothing where the system does not say.
std::optional<costmodel::Bytes> free_memory();

// What these ranks of the predicted plan hold together, at their fullest; those that it does not
// have hold nothing.
costmodel::Bytes memory_of_ranks(const costmodel::Estimate& predicted,
                                 const std::vector<int>& ranks);

}  // namespace runtime
