// The report of a stage's sharding, operator by operator.
#pragma once

#include <string>
#include <vector>

#include "planner/report/table.hpp"
#include "planner/search/sharded_stage.hpp"

namespace planner {

// A summary, one sentence per line: the mesh, the sharding found, the cost of the plan's own
// sharding by the same prices, what is proved.
std::vector<std::string> sharding_sentences(const StageSharding& sharding);

// The plan that it amounts to and its iteration, and what no plan says of it.
std::vector<std::string> as_plan_sentences(const ShardedStage& stage);

// One row per operator of each group of layers: strategy, collectives per micro-batch and at the
// end of the iteration, and their seconds per iteration.
Table sharding_table(const StageSharding& sharding);

}  // namespace planner
