#include "costmodel/estimate/plan_inputs.hpp"

#include <algorithm>
#include <utility>

#include "costmodel/base/error.hpp"
#include "costmodel/schedule/closed_form.hpp"

namespace costmodel {

PlanInputs plan_inputs(const Workload& on, const ParallelPlan& plan,
                       std::shared_ptr<const AlikeStages> stages, PriceCache& cache, int between) {
  const std::int64_t m = plan.micro_batches(on.training.global_batch);
  SHARDPLAN_CHECK(m >= 1);
  const Mesh mesh(plan);
  const GroupLayout replicas = mesh.replica_layout(on.cluster);
  return {.on = on,
          .plan = plan,
          .layers = cache.layers(plan, on),
          .held = cache.held(plan, m, on.model),
          .alike = std::move(stages),
          .micro_batches = m,
          .between = between,
          .mesh = mesh,
          .replicas = replicas,
          .expert_replicas =
              on.model.experts > 0 ? expert_mesh(plan).replica_layout(on.cluster) : replicas};
}

double idle_share(const PlanInputs& in) {
  const ParallelPlan& plan = in.plan;
  // Of a schedule from a file no formula is known: as 1F1B, or interleaved.
  const auto kind = is_listed(plan.schedule) ? usual_schedule(plan.vpp) : plan.schedule;
  const double bubble = bubble_fraction(kind, plan.pp + in.between, plan.vpp, in.micro_batches);
  return bubble / (1 + bubble);
}

std::int64_t ranks_on_a_node(const ClusterSpec& cluster) {
  return std::min(cluster.devices, cluster.devices_per_node);
}

}  // namespace costmodel
