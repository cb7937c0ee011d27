// A command as a process of its own, so that whatever ends it ends it alone.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace planner {

struct ChildLimits {
  double seconds = 0;      // that it may run; 0: as long as it takes
  std::size_t memory = 0;  // bytes that it may write to (RLIMIT_DATA); 0: the system's limit
};

struct ChildEnd {
  int status = 0;        // as a shell reports it: 128 + number when a signal ended it
  std::string errors;    // what it wrote to standard error, at most 64 KiB
  bool stopped = false;  // because `stopped` was true
  bool late = false;     // because its time was over
};

// Runs a program with arguments (the first is its name) and waits for its end. It gets no standard
// input, and its standard output is thrown away. It is killed when this process ends, however that
// happens, when `stopped` is true and when its time is over. Throws costmodel::ConfigError when the
// system lacks processes or descriptors.
ChildEnd run_child(const std::string& program, const std::vector<std::string>& arguments,
                   const std::function<bool()>& stopped, const ChildLimits& limits = {});

}  // namespace planner
