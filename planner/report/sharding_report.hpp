// A stage's sharding, operator by operator, for people.
#pragma once

#include <string>
#include <vector>

#include "planner/report/table.hpp"
#include "planner/sharding/stage_sharding.hpp"

namespace planner {

// The whole of it, one sentence a line: the mesh, what was found, what the plan's own costs by the
// same prices, what is proved.
std::vector<std::string> sharding_sentences(const StageSharding& sharding);

// One row an operator of each group of layers: its strategy, its collectives in a micro-batch and
// at the end of the iteration, and their seconds in an iteration.
Table sharding_table(const StageSharding& sharding);

}  // namespace planner
