// The memory of the fullest rank over an iteration as a picture: time to the right, what tensors
// take of each kind upwards, the operator under the pointer.
#pragma once

#include <string>

#include "costmodel/estimate/memory_trace.hpp"

namespace planner {

// Longer ones are drawn in part: of neighbours the fullest.
inline constexpr std::size_t most_drawn_samples = 2'000;

// `capacity`: the device's, a line. "" for a trace without samples.
std::string memory_html(const costmodel::MemoryTrace& trace, costmodel::Bytes capacity);

}  // namespace planner
