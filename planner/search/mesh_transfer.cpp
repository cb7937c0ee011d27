#include "planner/search/mesh_transfer.hpp"

#include "costmodel/cost/collective.hpp"
#include "costmodel/estimate/layer_mix.hpp"
#include "costmodel/estimate/stage_cost.hpp"
#include "costmodel/machine/cluster_groups.hpp"
#include "costmodel/plan/mesh.hpp"
#include "planner/solvers/tolerances.hpp"

namespace planner {

using namespace costmodel;

// What passes depends on the layer that the later stage begins with.
MeshTransfer::MeshTransfer(const Scenario& scenario, std::int64_t sequences) : s_(&scenario) {
  const Workload on{scenario.model, scenario.cluster, scenario.training};
  ParallelPlan plan;
  plan.micro_batch = sequences;
  const auto layers = static_cast<int>(scenario.model.layers);
  passing_.emplace_back();
  for (int layer = 0; layer <= layers; ++layer) {
    const auto mix = layer_mix(scenario.model, layer, layer < layers ? 1 : 0, {});
    passing_.push_back(passed_on(plan, tokens_into(mix, scenario.training), on));
  }
}

// Within a group the two stages span more devices than the one, and so the tiers that hold more.
Seconds MeshTransfer::least(int group, int devices, bool join, int layer) const {
  const ClusterSpec& own = group_of(s_->cluster, group);
  const ClusterSpec network = join ? joined_view(s_->cluster, own) : own;
  const Bytes message = passing_[static_cast<std::size_t>(layer)] / devices;
  const std::size_t last = network.tiers.size() - 1;
  Seconds least = transfer_time(message, last, devices, network);
  for (std::size_t tier = 0; !join && tier < last; ++tier) {
    if (network.tiers[tier].devices > devices)
      least = min(least, transfer_time(message, tier, devices, network));
  }
  return least + s_->training.stack.host.collective_wait;
}

// The stage with the smaller tensor groups determines the size of the message.
Seconds MeshTransfer::least_table(int group, int tp, bool join) const {
  const TrainingSpec& training = s_->training;
  const bool summed = training.stack.collectives.embedding_all_reduce &&
                      (s_->model.tie_embeddings || s_->model.mtp_layers > 0);
  if (!summed) return Seconds(0);
  const ClusterSpec& own = group_of(s_->cluster, group);
  ClusterSpec network = join ? joined_view(s_->cluster, own) : own;
  const Bytes table(shared_tables(s_->model, tp) * gradient_bytes_per_parameter(training));
  const auto tiers = network.tiers;
  Seconds least(infinity);
  for (std::size_t tier = join ? 1 : 0; tier < tiers.size(); ++tier) {
    network.tiers = {tiers[tier]};
    least = min(least, collective_time(CollectiveKind::all_reduce, table, layout_of(2, 1, network),
                                       network));
  }
  return least;
}

}  // namespace planner
