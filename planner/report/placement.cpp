#include "planner/report/placement.hpp"

#include "costmodel/plan/mesh.hpp"
#include "costmodel/plan/pipeline.hpp"
#include "costmodel/plan/stage_plan.hpp"

namespace planner {

using namespace costmodel;

namespace {

std::vector<PlacedRank> placed_alike(const ParallelPlan& plan, const ClusterSpec& cluster) {
  const Mesh mesh(plan), experts = expert_mesh(plan);
  std::vector<PlacedRank> ranks;
  for (std::int64_t r = 0; r < mesh.size(); ++r) {
    const auto at = mesh.coordinates(r), of_experts = experts.coordinates(r);
    ranks.push_back({r, at.pp, at.tp, at.cp, at.dp, of_experts.ep, of_experts.tp, "",
                     r / cluster.devices_per_node, r % cluster.devices_per_node});
  }
  return ranks;
}

std::vector<PlacedRank> placed_by_stage(const ParallelPlan& plan, const ClusterSpec& cluster) {
  std::vector<PlacedRank> ranks;
  int stage = 0;
  for (const StageMesh& mesh : stage_meshes(plan, cluster)) {
    const std::int64_t node = group_of(cluster, mesh.group).devices_per_node;
    const std::int64_t t = mesh.plan.tp, c = mesh.plan.cp, e = mesh.plan.ep, et = mesh.plan.etp;
    for (std::int64_t i = 0; i < mesh.devices; ++i) {
      const std::int64_t device = mesh.first + i;
      ranks.push_back({static_cast<std::int64_t>(ranks.size()), stage, static_cast<int>(i % t),
                       static_cast<int>(i / t % c), static_cast<int>(i / (t * c)),
                       static_cast<int>(i / et % e), static_cast<int>(i % et), mesh.name,
                       device / node, device % node});
    }
    ++stage;
  }
  return ranks;
}

}  // namespace

std::vector<PlacedRank> placement(const ParallelPlan& plan, const ClusterSpec& cluster) {
  std::vector<PlacedRank> ranks;
  for (const Pipeline& pipeline : pipelines_of(plan, 0)) {
    const ClusterSpec& its = cluster_of(pipeline, cluster);
    for (PlacedRank rank : by_stage(pipeline.plan, its) ? placed_by_stage(pipeline.plan, its)
                                                        : placed_alike(pipeline.plan, its)) {
      rank.rank += pipeline.first_rank;
      if (pipeline.on) rank.group = pipeline.group;
      ranks.push_back(rank);
    }
  }
  return ranks;
}

}  // namespace planner
