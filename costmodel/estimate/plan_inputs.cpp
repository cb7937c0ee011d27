#include "costmodel/estimate/plan_inputs.hpp"

#include <algorithm>
#include <utility>

#include "costmodel/base/error.hpp"
#include "costmodel/schedule/closed_form.hpp"

namespace costmodel {

namespace {

std::unique_ptr<const PlanInputs::BetweenShards> groups_of(const ParallelPlan& plan,
                                                           const Workload& on) {
  PlanInputs::BetweenShards groups;
  groups.others = Mesh(plan).between_shards(plan.dp_replicate, on.cluster);
  groups.experts = on.model.experts == 0
                       ? groups.others
                       : expert_mesh(plan).between_shards(plan.dp_replicate, on.cluster);
  return std::make_unique<const PlanInputs::BetweenShards>(groups);
}

}  // namespace

PlanInputs plan_inputs(const Workload& on, const ParallelPlan& plan,
                       std::shared_ptr<const AlikeStages> stages, PriceCache& cache) {
  const std::int64_t m = plan.micro_batches(on.training.global_batch);
  SHARDPLAN_CHECK(m >= 1);
  const Mesh mesh(plan);
  PlanInputs in{.on = on,
                .plan = plan,
                .layers = cache.layers(plan, on),
                .held = cache.held(plan, m, on.model),
                .alike = std::move(stages),
                .micro_batches = m,
                .mesh = mesh,
                .replicas = mesh.shard_layout(plan.dp_replicate, on.cluster),
                .expert_replicas = {},
                .groups = nullptr};
  if (plan.dp_replicate > 1) in.groups = groups_of(plan, on);
  in.expert_replicas = on.model.experts > 0
                           ? expert_mesh(plan).shard_layout(plan.dp_replicate, on.cluster)
                           : in.replicas;
  return in;
}

double idle_share(const PlanInputs& in) {
  const ParallelPlan& plan = in.plan;
  // Of a schedule from a file no formula is known: as 1F1B, or interleaved.
  const auto kind = is_listed(plan.schedule) ? usual_schedule(plan.vpp) : plan.schedule;
  const double bubble = bubble_fraction(kind, plan.pp, plan.vpp, in.micro_batches);
  return bubble / (1 + bubble);
}

std::int64_t ranks_on_a_node(const ClusterSpec& cluster) {
  return std::min(cluster.devices, cluster.devices_per_node);
}

}  // namespace costmodel
