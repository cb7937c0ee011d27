#include "planner/solvers/slicing_reason.hpp"

#include <fmt/format.h>

#include <cmath>
#include <vector>

namespace planner {

namespace {

// The first layer that no range with a stage option satisfying the predicate covers; -1 if all are
// covered.
template <class Wanted>
int uncovered(const SlicingProblem& p, Wanted wanted) {
  std::vector<char> good(p.options.size(), 0);
  for (std::size_t c = 0; c < good.size(); ++c) {
    for (const StageOption& o : p.options[c])
      if (wanted(o)) good[c] = 1;
  }
  std::vector<int> opened(static_cast<std::size_t>(p.layers) + 1, 0);
  for (int first = 0; first < p.layers; ++first) {
    for (int end = first + 1; end <= p.layers; ++end) {
      const std::int32_t c = p.range_class[p.at(first, end)];
      if (c < 0 || good[static_cast<std::size_t>(c)] == 0) continue;
      ++opened[static_cast<std::size_t>(first)];
      --opened[static_cast<std::size_t>(end)];
    }
  }
  int open = 0;
  for (int layer = 0; layer < p.layers; ++layer) {
    open += opened[static_cast<std::size_t>(layer)];
    if (open == 0) return layer;
  }
  return -1;
}

}  // namespace

std::string senseless(const SlicingProblem& p) {
  if (p.layers < 1) return "there are no layers to cut";
  if (p.devices < 1) return "there are no devices";
  if (p.micro_batches < 1) return "there are no micro-batches";
  return {};
}

std::string why_unsliceable(const SlicingProblem& p) {
  const auto placed = [&](const StageOption& o) {
    return o.devices >= 1 && o.devices <= p.devices;
  };
  const auto ends = [&](const StageOption& o) {
    return placed(o) && std::isfinite(o.seconds) && o.seconds >= 0;
  };
  const auto fits = [&](const StageOption& o) { return ends(o) && o.most_in_flight >= 1; };
  if (const int layer = uncovered(p, placed); layer >= 0)
    return fmt::format("no stage with layer {} goes on any of the submeshes", layer);
  if (const int layer = uncovered(p, ends); layer >= 0)
    return fmt::format("every stage with layer {} takes for ever", layer);
  if (const int layer = uncovered(p, fits); layer >= 0) {
    return fmt::format("no stage with layer {} fits in memory, even with one micro-batch in flight",
                       layer);
  }
  SlicingProblem roomy = p;
  bool limited = false;
  for (auto& list : roomy.options) {
    for (StageOption& o : list) {
      limited |= o.most_in_flight < any_in_flight;
      o.most_in_flight = any_in_flight;
    }
  }
  if (limited && best_slicing(roomy).found()) {
    return "stages fit in memory one by one, but no slicing fits with the micro-batches that its "
           "pipeline keeps in flight";
  }
  return fmt::format(
      "no slicing uses exactly {} devices: the submeshes of its stages do not add up", p.devices);
}

}  // namespace planner
