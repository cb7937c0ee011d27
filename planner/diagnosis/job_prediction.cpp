#include "planner/diagnosis/job_prediction.hpp"
#include "costmodel/estimate/evaluator.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace planner {

using namespace costmodel;

namespace {

PredictedPart& part_of(PredictedJob& job, JobPart part) {
  return job.parts[static_cast<std::size_t>(part)];
}

// All micro-batches of an iteration, by pipeline rank.
PredictedPart over_ranks(const std::vector<Seconds>& by_stage, const Estimate& e) {
  const auto ranks = static_cast<std::size_t>(e.plan.pp);
  std::vector<Seconds> sums(ranks);
  for (std::size_t stage = 0; stage < by_stage.size(); ++stage)
    sums[stage % ranks] += by_stage[stage] * static_cast<double>(e.micro_batches);
  const auto [least, most] = std::ranges::minmax(sums);
  return {least, most};
}

double mixed(double a, double b, double share) {
  if (a <= 0 || b <= 0) return a + (b - a) * share;
  return a * std::pow(b / a, share);
}

}  // namespace

PredictedJob between(const PredictedJob& a, const PredictedJob& b, double share) {
  PredictedJob p = a;
  p.iteration = Seconds(mixed(a.iteration.value, b.iteration.value, share));
  p.allocated = Bytes(mixed(a.allocated.value, b.allocated.value, share));
  p.reserved = Bytes(mixed(a.reserved.value, b.reserved.value, share));
  for (std::size_t i = 0; i < p.parts.size(); ++i) {
    p.parts[i].least = Seconds(mixed(a.parts[i].least.value, b.parts[i].least.value, share));
    p.parts[i].most = Seconds(mixed(a.parts[i].most.value, b.parts[i].most.value, share));
  }
  return p;
}

PredictedJob both(const PredictedJob& a, const PredictedJob& b, const PredictedJob& neither) {
  const auto figure = [](double x, double y, double without) {
    return without > 0 ? x * (y / without) : x + y;
  };
  PredictedJob p = a;
  p.iteration = a.iteration + b.iteration - neither.iteration;
  p.allocated = Bytes(figure(a.allocated.value, b.allocated.value, neither.allocated.value));
  p.reserved = Bytes(figure(a.reserved.value, b.reserved.value, neither.reserved.value));
  for (std::size_t i = 0; i < p.parts.size(); ++i) {
    const PredictedPart &x = a.parts[i], &y = b.parts[i], &none = neither.parts[i];
    p.parts[i] = {Seconds(std::max(0.0, x.least.value + y.least.value - none.least.value)),
                  Seconds(std::max(0.0, x.most.value + y.most.value - none.most.value))};
  }
  p.slow_iterations = std::max(a.slow_iterations, b.slow_iterations);
  p.grows = a.grows || b.grows;
  return p;
}

PredictedJob predicted(const Estimate& e, Evaluator& evaluator, const Job& job, LogContent log) {
  const PlanCost cost = e.plan.even() ? evaluator.cost(e.plan) : PlanCost();
  PredictedJob p;
  p.iteration = e.iteration;
  p.slow_iterations = job.slow_iterations;
  p.grows = job.grows;
  const CountedPeak counted =
      log.reserved ? evaluator.counted_peak(e) : evaluator.counted_by_stack(e);
  p.allocated = counted.allocated;
  p.reserved = counted.reserved;
  p.has_parts = e.plan.even();
  if (!p.has_parts) return p;
  part_of(p, JobPart::forward) = over_ranks(e.stage_forward, e);
  part_of(p, JobPart::backward) = over_ranks(e.stage_backward, e);
  part_of(p, JobPart::data) = {job.data, job.data};
  PredictedPart& sync = part_of(p, JobPart::gradient_sync);
  PredictedPart& step = part_of(p, JobPart::optimizer);
  const bool gathers = !job.training.overlap.overlap_param_gather;
  const double own = job.cluster.measured.time_factor;
  bool first = true;
  for (const RankRow& rank : cost.ranks) {
    const Seconds reduced = rank.after.gradient_exposed * own;
    const Seconds stepped =
        (rank.after.optimizer + (gathers ? rank.after.gather_exposed : Seconds())) * own;
    sync = {first ? reduced : min(sync.least, reduced), max(sync.most, reduced)};
    step = {first ? stepped : min(step.least, stepped), max(step.most, stepped)};
    first = false;
  }
  const Seconds pipeline = e.pipeline + sync.most + job.data;
  part_of(p, JobPart::forward_backward) = {pipeline, pipeline};
  return p;
}

std::optional<PredictedJob> predict(const Job& job, const ModelSpec& model, LogContent log) {
  if (!is_valid(job.plan, model, job.cluster, job.training)) return {};
  Evaluator evaluator(model, job.cluster, job.training);
  const Estimate e = evaluator.estimate(job.plan);
  PredictedJob p = predicted(e, evaluator, job, log);
  if (log.data_in_forward && p.has_parts) {
    part_of(p, JobPart::forward).least += job.data;
    part_of(p, JobPart::forward).most += job.data;
  }
  return p;
}

}  // namespace planner
