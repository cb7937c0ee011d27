#include "planner/diagnosis/job_changes.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "costmodel/estimate/evaluator.hpp"
#include "costmodel/plan/plan_text.hpp"
#include "costmodel/scenario/residuals.hpp"
#include "planner/diagnosis/reason.hpp"
#include "planner/search/strategy.hpp"

namespace planner {

using namespace costmodel;

namespace {

// 95th percentile of a Student t of 3 degrees of freedom.
constexpr double t95 = 2.3534;

JobChange compared(Seconds now, Seconds then, double spread) {
  JobChange c;
  c.ratio = then / now;
  const double width = std::exp(t95 * spread);
  c.low = c.ratio / width;
  c.high = c.ratio * width;
  c.probability = costmodel::probability_faster(then.value, now.value, spread);
  return c;
}

struct OverlapKey {
  const char* name;
  bool Overlap::*on;
  std::string_view of = {};  // a word of the frameworks that have it; empty: all
};
constexpr std::array overlap_switches{
    OverlapKey{"overlap_grad_reduce", &Overlap::overlap_grad_reduce},
    OverlapKey{"overlap_param_gather", &Overlap::overlap_param_gather},
    OverlapKey{"tp_comm_overlap", &Overlap::tp_comm_overlap, "Megatron"},
    OverlapKey{"pp_overlap", &Overlap::pp_overlap, "Megatron"},
    OverlapKey{"cuda_graph", &Overlap::cuda_graph, "Megatron"},
    OverlapKey{"async_tp", &Overlap::async_tp, "torchtitan"},
    OverlapKey{"compile", &Overlap::compile, "PyTorch"}};

}  // namespace

std::vector<JobChange> helpful_changes(const Scenario& s, const Estimate& now, std::size_t most) {
  std::vector<JobChange> list;
  const double spread = s.training.error_band.pair_spread;
  constexpr double counts = 0.998;  // of the iteration: less is no help
  if (now.plan.even()) {
    Evaluator evaluator(s.model, s.cluster, s.training);
    for (const Step& step : one_step_away(now, s, evaluator)) {
      if (!step.fits || step.iteration > now.iteration * counts) continue;
      JobChange& c = list.emplace_back(compared(now.iteration, step.iteration, spread));
      c.knob = step.knob;
      c.change = step.change;
      c.peak = step.peak;
      c.breaks_fixed = step.breaks_fixed;
    }
  }
  for (const OverlapKey& key : overlap_switches) {
    const bool has = s.training.stack.framework.find(key.of) != std::string::npos;
    if (!has || s.training.overlap.*key.on) continue;
    TrainingSpec training = s.training;
    training.overlap.*key.on = true;
    Evaluator evaluator(s.model, s.cluster, training);
    const Estimate then = evaluator.estimate(now.plan);
    const bool fits = fit_of(then, s.search.memory_margin) == MemoryFit::fits;
    if (!fits || then.iteration > now.iteration * counts) continue;
    JobChange& c = list.emplace_back(compared(now.iteration, then.iteration, spread));
    c.knob = key.name;
    c.change = "off -> on";
    c.peak = then.peak;
  }
  std::ranges::stable_sort(list, {}, &JobChange::ratio);
  if (list.size() > most) list.resize(most);
  return list;
}

std::optional<BestPlan> best_plan(const Scenario& scenario, const Estimate& now, int threads,
                                  const std::function<bool()>& stopped) {
  if (!stages_alike(scenario)) return {};
  Scenario s = scenario;
  s.plan = {};
  const auto best = chosen_plan(s, {.threads = threads}, stopped);
  if (!best) return {};
  BestPlan b{*best, compared(now.iteration, best->iteration, s.training.error_band.pair_spread)};
  b.change.change = to_string(best->plan);
  b.change.peak = best->peak;
  return b;
}

}  // namespace planner
