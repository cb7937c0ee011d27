// How much memory a process can still allocate on this machine, and how much the ranks need.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "costmodel/base/units.hpp"
#include "costmodel/estimate/estimate.hpp"

namespace runtime {

// MemAvailable from the text of /proc/meminfo; nothing when the line is missing.
std::optional<costmodel::Bytes> available_memory(const std::string& meminfo);

// The files of a control group (cgroup).
struct ControlGroup {
  std::string root;  // mount point
  std::string path;  // below the mount point
};

// The groups in the text of /proc/self/cgroup: that of version 2, and the memory group of version
// 1.
std::vector<ControlGroup> memory_groups(const std::string& text);

// The smallest amount left by a control group and its ancestors: the limit (memory.max; version 1:
// memory.limit_in_bytes) minus the usage (memory.current; version 1: memory.usage_in_bytes), which
// excludes what memory.stat counts as reclaimable (file pages, kernel caches). Nothing when no
// group has a limit.
std::optional<costmodel::Bytes> group_memory(const ControlGroup& group);

// The minimum of the above for this process; nothing when the system reports none.
std::optional<costmodel::Bytes> free_memory();

// The predicted peak memory of these ranks together; ranks that the plan does not have count 0.
costmodel::Bytes memory_of_ranks(const costmodel::Estimate& predicted,
                                 const std::vector<int>& ranks);

}  // namespace runtime
