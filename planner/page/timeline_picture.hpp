// The schedule of one iteration as a picture to zoom and to hover: a row for each pipeline rank,
// computation and what follows it above, transfers to other ranks in the strip below. It is drawn
// without a script, on paper too; the script moves it.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "costmodel/schedule/timeline.hpp"

namespace planner {

// Longer timelines are drawn in part: start, middle and end, each as much.
inline constexpr std::size_t most_slices = 20'000;

// "" for a timeline without events.
std::string timeline_html(const costmodel::Timeline& timeline);

// What slices of one colour are; in_strip: drawn as thin ones, below the others.
struct SliceKind {
  std::string_view colour, words;  // a class of page_style
  bool in_strip = false;
};
using SliceKinds = std::map<std::string, SliceKind, std::less<>>;  // by the events' names

// Rows of anything on one scale of time, to zoom and to hover as timeline_html(): an event's rank
// is its row. `labels`: a text a row. A name without a kind is "not attributed".
std::string rows_html(const costmodel::Timeline& rows, const std::vector<std::string>& labels,
                      const SliceKinds& kinds);

// The same without anything to move or to hover: as wide as `scale` seconds, the first `ranks`
// ranks, what lies beyond either left out. For several one under another.
std::string still_timeline_html(const costmodel::Timeline& timeline, costmodel::Seconds scale,
                                int ranks);

// The axis below them, and what their colours stand for.
std::string still_axis_html(costmodel::Seconds scale);
std::string timelines_legend(const std::vector<costmodel::Timeline>& timelines);

}  // namespace planner
