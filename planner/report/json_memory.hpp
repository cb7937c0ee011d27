// The memory of the fullest rank over an iteration as JSON.
#pragma once

#include <string>

#include "costmodel/estimate/memory_trace.hpp"

namespace planner {

// The samples for JSON, in bytes and seconds: allocated_bytes and reserved_bytes of all, the number
// of the peak's, and a map each. Without samples: null, null, null, [].
std::string memory_json(const costmodel::MemoryTrace& trace);

}  // namespace planner
