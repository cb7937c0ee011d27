// How much memory a process may still take on this machine.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "costmodel/units.hpp"

namespace runtime {

// MemAvailable of /proc/meminfo's text; nothing where that line is missing.
std::optional<costmodel::Bytes> available_memory(const std::string& meminfo);

// What a control group and all above it leave, the smallest (cgroup v2): memory.max less what is
// used, which is memory.current without what memory.stat says can be reclaimed at once (pages of
// files, the kernel's caches). `root` is where groups are mounted, `group` the path below it, as in
// /proc/self/cgroup. Nothing where no group has a limit.
std::optional<costmodel::Bytes> group_memory(const std::filesystem::path& root,
                                             std::filesystem::path group);

// The smaller of both for this process; nothing where the system does not say.
std::optional<costmodel::Bytes> free_memory();

}  // namespace runtime
