// What of a strategy's communication the cost model leaves exposed: tensor-parallel collectives
// beside the product that they feed or drain, a ring beside its attention, the collectives of
// weights beside the passes of a micro-batch.
#pragma once

#include <vector>

#include "planner/sharding/operator_strategy.hpp"

namespace planner {

// Of exchanges that feed or drain a product of `window` seconds; `independent`: they neither feed
// it nor wait for it (costmodel/cost/layer_cost.hpp: exposed_pipelined, exposed_beside).
costmodel::Seconds exposed_by_product(const std::vector<Exchange>& exchanges,
                                      costmodel::Seconds window, bool independent,
                                      const StagePrices& prices);

// Of a ring's transfers beside an attention of `window` seconds (exposed_ring).
costmodel::Seconds exposed_by_ring(const Exchange& ring, costmodel::Seconds window,
                                   const StagePrices& prices);

// Of a collective of weights that takes `alone` seconds, where the framework hides it: all weights
// of the stage once an iteration, beside a micro-batch's pass but for one layer's part; with ZeRO-2
// (gradients) and ZeRO-3 (both) those of a layer in every micro-batch, beside the pass of a layer
// but for the first (costmodel/estimate/iteration_end.cpp and stage_cost.cpp say the same of a
// plan).
costmodel::Seconds exposed_by_passes(costmodel::CollectiveKind kind, int zero,
                                     costmodel::Seconds alone, const StagePrices& prices);

}  // namespace planner
