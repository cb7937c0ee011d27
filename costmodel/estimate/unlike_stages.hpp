// Heterogeneous stages or devices. Each stage is priced as one of a pipeline of identical stages on
// its own devices, and its rows go into a common table; the communication between stages is priced
// here.
#pragma once

#include <cstddef>
#include <vector>

#include "costmodel/estimate/plan_cost.hpp"
#include "costmodel/estimate/pricing.hpp"
#include "costmodel/plan/stage_plan.hpp"

namespace costmodel {

// The layers of each stage.
std::vector<LayerMix> unlike_mixes(const std::vector<StageMesh>& meshes, const Workload& on);

// What a stage takes over from the table of a pipeline in which every stage is identical to it.
struct StagePrice {
  StageRow stage;
  RankRow rank;
  Seconds forward, backward;  // durations
  Offload offload;
};
StagePrice stage_price(const PlanCost& alike, std::size_t stage);

// The table of a plan whose stages have these meshes, layers and prices.
PlanCost cost_of_unlike(const ParallelPlan& plan, const std::vector<StageMesh>& meshes,
                        const std::vector<LayerMix>& mixes, const std::vector<StagePrice>& prices,
                        const Workload& on);

}  // namespace costmodel
