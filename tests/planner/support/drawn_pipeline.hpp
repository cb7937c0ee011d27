// Pipelines whose layers are drawn at random, and all cuts of them: the reference for best cuts and
// for lists of cuts.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "costmodel/schedule/closed_form.hpp"
#include "planner/solvers/pipeline_cut.hpp"
#include "tests/costmodel/support/fixtures.hpp"

namespace drawn_pipeline {

using planner::CutProblem;
using planner::CutStage;

// Layers with times and memory of their own; a stage has a time of its own beside.
struct Drawn {
  int layers, stages, micro_batches;
  double transfer, memory;
  std::vector<double> forward, backward, kept;
  double per_stage;
  bool additive;  // else a stage of several layers is quicker than they are one by one
  std::map<std::pair<int, int>, CutStage> known;

  const CutStage* stage(int first, int end) {
    if (first == 0 && end == layers) return nullptr;
    const auto [at, is_new] = known.try_emplace({first, end});
    CutStage& s = at->second;
    if (!is_new) return &s;
    double held = 0;
    s.forward = per_stage;
    for (auto i = static_cast<std::size_t>(first); i < static_cast<std::size_t>(end); ++i) {
      s.forward += forward[i];
      s.backward += backward[i];
      held += kept[i];
    }
    if (!additive) s.backward *= 1 - 0.02 * (end - first);
    s.most_in_flight = static_cast<int>(memory / held);
    // Before the last rank two are in flight at least: what has no room for them fits nowhere.
    if (end < layers && s.most_in_flight < std::min(2, micro_batches)) s.most_in_flight = 0;
    s.after = 0.1 * end;
    return &s;
  }
  CutProblem problem() {
    CutProblem p{.layers = layers, .stages = stages, .micro_batches = micro_batches, .stage = {}};
    p.transfer = transfer;
    p.stage = [this](int first, int end) { return stage(first, end); };
    return p;
  }
};

inline Drawn draw(fixtures::Random& random, bool additive) {
  Drawn d{};
  d.stages = random.integer(2, 5);
  d.layers = random.integer(d.stages, 9);
  d.micro_batches = random.integer(1, 12);
  d.transfer = random.integer(0, 1) == 0 ? 0 : random.real(0, 0.3);
  d.memory = random.real(1, 12);
  for (int i = 0; i < d.layers; ++i) {
    d.forward.push_back(random.real(0.5, 1.5));
    d.backward.push_back(random.real(1, 3));
    d.kept.push_back(random.real(0.2, 1));
  }
  d.per_stage = random.real(0, 0.2);
  d.additive = additive;
  return d;
}

// Visits every cut as its ends.
inline void all_cuts(const Drawn& d, std::vector<int>& ends,
                     const std::function<void(const std::vector<int>&)>& visit) {
  const int left = d.stages - static_cast<int>(ends.size());
  const int first = ends.empty() ? 0 : ends.back();
  for (int end = left == 1 ? d.layers : first + 1; end <= d.layers - left + 1; ++end) {
    ends.push_back(end);
    if (left == 1) visit(ends);
    if (left > 1) all_cuts(d, ends, visit);
    ends.pop_back();
  }
}

inline bool fits(Drawn& d, const std::vector<int>& ends) {
  for (int r = 0, first = 0; r < d.stages; ++r) {
    const auto end = ends[static_cast<std::size_t>(r)];
    if (d.stage(first, end)->most_in_flight < std::min(d.stages - r, d.micro_batches)) return false;
    first = end;
  }
  return true;
}

inline costmodel::PipelineTimes times_of(Drawn& d, const std::vector<int>& ends) {
  costmodel::PipelineTimes times;
  times.transfer = costmodel::Seconds(d.transfer);
  int first = 0;
  for (const int end : ends) {
    times.forward.emplace_back(d.stage(first, end)->forward);
    times.backward.emplace_back(d.stage(first, end)->backward);
    first = end;
  }
  return times;
}

// The bound that the cost model has of this cut.
inline double bound_of(Drawn& d, const std::vector<int>& ends) {
  return pipeline_lower_bound(costmodel::ScheduleKind::one_f_one_b, d.stages, 1, d.micro_batches,
                              times_of(d, ends))
             .value +
         d.stage(0, ends.front())->after;
}

}  // namespace drawn_pipeline
