// Kernels of a trace by shape, as microbenchmarks in the format of configs/microbench: products,
// attention, and copies in the device's memory.
#pragma once

#include <string>

#include "planner/traces/trace.hpp"

namespace planner {

// One measurement a line, the median of a shape's kernels, of shapes that were launched twice or
// more; YAML whose lines are JSON, or JSON. Throws ConfigError for a trace of no such kernel, and
// one without the sizes of operators.
std::string trace_rows(const Trace& trace, bool json);

}  // namespace planner
