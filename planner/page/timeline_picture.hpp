// The schedule of one iteration as a picture to zoom and to hover: a row for each pipeline rank,
// computation and what follows it above, transfers to other ranks in the strip below. It is drawn
// without a script, on paper too; the script moves it.
#pragma once

#include <string>

#include "costmodel/schedule/timeline.hpp"

namespace planner {

// Longer timelines are drawn in part: start, middle and end, each as much.
inline constexpr std::size_t most_slices = 20'000;

// "" for a timeline without events.
std::string timeline_html(const costmodel::Timeline& timeline);

}  // namespace planner
