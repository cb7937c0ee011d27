// What the rows of a plan's stage-cost table are computed from. All of it is known beforehand.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "costmodel/estimate/alike_stages.hpp"
#include "costmodel/estimate/layer_mix.hpp"
#include "costmodel/estimate/price_cache.hpp"
#include "costmodel/estimate/pricing.hpp"
#include "costmodel/plan/mesh.hpp"
#include "costmodel/plan/parallel_plan.hpp"

namespace costmodel {

struct PlanInputs {
  const Workload& on;
  const ParallelPlan& plan;  // as the framework runs it
  const LayerPrices& layers;
  HeldMixes held;
  std::shared_ptr<const AlikeStages> alike;
  std::int64_t micro_batches = 0;
  Mesh mesh;
  GroupLayout replicas, expert_replicas;  // ranks with the same weights, and the same experts; of
                                          // a hybrid sharding those of a group
  struct BetweenShards {
    GroupLayout others, experts;
  };
  std::unique_ptr<const BetweenShards> groups;  // ... and ranks with the same shard of it

  const std::vector<LayerMix>& mixes() const { return alike->mixes; }  // by virtual stage
  std::size_t last_stage() const { return alike->mixes.size() - 1; }
  std::size_t rank_of(std::size_t stage) const {
    return static_cast<std::size_t>(
        costmodel::rank_of(plan.schedule, plan.pp, static_cast<int>(stage)));
  }
  // Of a pipeline that goes two ways, the first rank has the last stage as well.
  bool has_stage(std::size_t rank, std::size_t stage) const {
    const std::size_t home = rank_of(stage);
    return home == rank ||
           (plan.ways() > 1 && home + rank + 1 == static_cast<std::size_t>(plan.pp));
  }
  // The micro-batches that a chunk of a rank takes.
  double chunk_batches() const { return static_cast<double>(micro_batches) / plan.ways(); }
  std::size_t stage_of(int chunk, std::size_t rank) const {
    return static_cast<std::size_t>(
        costmodel::stage_of(plan.schedule, plan.pp, chunk, static_cast<int>(rank)));
  }
  // The row of a rank's chunk.
  std::size_t row_of(int chunk, std::size_t rank) const {
    return (*alike->row_of)[stage_of(chunk, rank)];
  }
};

// Workload, plan and cache must outlive the result.
PlanInputs plan_inputs(const Workload& on, const ParallelPlan& plan,
                       std::shared_ptr<const AlikeStages> stages, PriceCache& cache);

// The fraction of time that ranks idle in the pipeline's bubble, for equal stages.
double idle_share(const PlanInputs& in);

// The devices of a node, or of a cluster smaller than one.
std::int64_t ranks_on_a_node(const ClusterSpec& cluster);

}  // namespace costmodel
