#include "planner/diagnosis/job_prediction.hpp"
#include "costmodel/estimate/evaluator.hpp"

#include <algorithm>
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

}  // namespace

PredictedJob predicted(const Estimate& e, Evaluator& evaluator, const Job& job) {
  const PlanCost cost = e.plan.even() ? evaluator.cost(e.plan) : PlanCost();
  PredictedJob p;
  p.iteration = e.iteration;
  p.slow_iterations = job.slow_iterations;
  const CountedPeak counted = evaluator.counted_peak(e);
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

std::optional<PredictedJob> predict(const Job& job, const ModelSpec& model, bool data_in_forward) {
  if (!is_valid(job.plan, model, job.cluster, job.training)) return {};
  Evaluator evaluator(model, job.cluster, job.training);
  const Estimate e = evaluator.estimate(job.plan);
  PredictedJob p = predicted(e, evaluator, job);
  if (data_in_forward && p.has_parts) {
    part_of(p, JobPart::forward).least += job.data;
    part_of(p, JobPart::forward).most += job.data;
  }
  return p;
}

}  // namespace planner
