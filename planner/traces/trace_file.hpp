// A trace in a file of any known kind.
#pragma once

#include <string>

#include "planner/traces/trace.hpp"

namespace planner {

// With its operators nested and its iterations found. Throws ConfigError for a file that is no
// trace, or one that was cut short.
Trace read_trace(const std::string& file);

// Whether the file begins as a trace does, so that it is no log: by its first bytes.
bool is_trace_file(const std::string& file);

}  // namespace planner
