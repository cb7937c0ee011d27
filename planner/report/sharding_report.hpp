// The report of a stage's sharding, operator by operator.
#pragma once

#include <string>
#include <vector>

#include "planner/report/table.hpp"
#include "planner/sharding/stage_sharding.hpp"

namespace planner {

// A summary, one sentence per line: the mesh, the sharding found, the cost of the plan's own
// sharding by the same prices, what is proved.
std::vector<std::string> sharding_sentences(const StageSharding& sharding);

// One row per operator of each group of layers: strategy, collectives per micro-batch and at the
// end of the iteration, and their seconds per iteration.
Table sharding_table(const StageSharding& sharding);

}  // namespace planner
