#include "planner/search/replica_plan.hpp"

#include <algorithm>
#include <utility>

#include "costmodel/estimate/evaluator.hpp"
#include "costmodel/plan/replica_groups.hpp"

namespace planner {

using namespace costmodel;

ParallelPlan replica_plan(const ReplicaSearch& found, const Scenario& s) {
  ParallelPlan plan = found.shares.front().plan;
  for (std::size_t g = 0; g < found.shares.size(); ++g) {
    const ReplicaShare& share = found.shares[g];
    const ParallelPlan& own = share.plan;
    plan.sequence_parallel = plan.sequence_parallel || own.sequence_parallel;
    plan.replica_groups.push_back({s.cluster.groups[g].name, own.tp, own.pp, own.dp,
                                   own.micro_batch, share.micro_batches, own.recompute, own.zero});
  }
  join_replicas(plan);
  return plan;
}

void rank_replicas(MeshSearch& found, const Scenario& s) {
  if (!found.replicas || found.replicas->shares.empty()) return;
  Evaluator evaluator(s.model, s.cluster, s.training);
  Estimate estimate = evaluator.estimate(replica_plan(*found.replicas, s));
  const auto slower = [&](const Estimate& e) { return e.iteration > estimate.iteration; };
  // What is proved of pipelines is not of replicas; of these the best is.
  const Seconds least =
      found.replicas->expired
          ? Seconds(evaluator.model_flops().value / peak_of(s.cluster, s.training.precision).value)
          : estimate.iteration;
  found.lower_bound = min(found.lower_bound, least);
  const auto at = std::ranges::find_if(found.plans, slower);
  found.plans.insert(at, std::move(estimate));
}

Seconds best_pipeline(const MeshSearch& found) {
  Seconds best;
  for (const Estimate& e : found.plans)
    if (e.plan.pipelines() == 1 && (best.value == 0 || e.iteration < best)) best = e.iteration;
  return best;
}

}  // namespace planner
