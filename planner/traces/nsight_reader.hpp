// SQLite exports of Nsight Systems: nsys export --type sqlite, or nsys profile --export=sqlite.
#pragma once

#include <string>

#include "planner/traces/trace.hpp"

namespace planner {

// Kernels, copies, the calls that launched them, and NVTX ranges, by which PyTorch names its
// operators and their sizes (nsys profile --pytorch=autograd-shapes-nvtx). Throws ConfigError for
// a file that is no such export, and in a program that was built without SQLite.
Trace read_nsight(const std::string& file);

// Whether this build can.
bool reads_nsight();

}  // namespace planner
