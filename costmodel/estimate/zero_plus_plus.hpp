// ZeRO++ (Wang et al. 2023, arXiv:2306.10209) in place of ZeRO-3's collectives: what its three
// parts take, send and keep.
#pragma once

#include "costmodel/estimate/plan_cost.hpp"
#include "costmodel/estimate/plan_inputs.hpp"

namespace costmodel {

// Of one layer: gathers for forward and for backward, and the reduction of its gradients.
struct ShardedPasses {
  Seconds forward, backward, reduction;
};

// Of `parameters` on a device in `parts` messages, as ZeRO-3 has them:
// qwZ   forward gathers weights in 8 bits, which are then widened (section 3.1);
// hpZ   backward gathers them from a second copy, in shards over a few neighbours (section 3.2);
// qgZ   gradients travel in 4 bits: an all-to-all within a node, a sum, and one between nodes
//       (section 3.3). Quantising and summing move memory.
// Scales, one for some hundred values, are not counted. What has no part of its own is ZeRO-3's.
ShardedPasses zero_plus_plus(const PlanInputs& in, double parameters, double parts,
                             const ClusterSpec& network);

// What a device of a rank sends, of so many micro-batches.
Traffic zero_plus_plus_traffic(const RankWeights& weights, const ParallelPlan& plan,
                               const TrainingSpec& training, const ClusterSpec& cluster,
                               double micro_batches);

// The shard of hpZ's second copy.
Bytes second_copy(const RankWeights& weights, const ParallelPlan& plan,
                  const TrainingSpec& training);

}  // namespace costmodel
