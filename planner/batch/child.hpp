// A command as a process of its own, so that whatever ends it ends it alone.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace planner {

struct ChildEnd {
  int status = 0;      // as a shell reports it: 128 + number when a signal ended it
  std::string errors;  // what it wrote to standard error, at most 64 KiB
  bool stopped = false;
};

// Runs a program with arguments (the first is its name) and waits for its end. It gets no standard
// input, and its standard output is thrown away. It is killed when this process ends, however that
// happens, and when `stopped` says so. Throws costmodel::ConfigError when the system lacks
// processes or descriptors.
ChildEnd run_child(const std::string& program, const std::vector<std::string>& arguments,
                   const std::function<bool()>& stopped);

}  // namespace planner
