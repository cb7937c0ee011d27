// Traces in the Trace Event Format: torch.profiler's (Kineto), and those that `shardplan run` and
// `shardplan simulate` write.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "planner/traces/trace.hpp"

namespace planner {

// `next` gives the text piece by piece. Throws ConfigError for what is no such trace, for one
// without kernels or actions, and for one of more than 4 million events that count.
Trace read_chrome_trace(const std::function<std::string_view()>& next, const std::string& file);

}  // namespace planner
