// A stage's sharding as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "planner/search/sharded_stage.hpp"

namespace planner {

nlohmann::ordered_json sharding_json(const ShardedStage& stage);

}  // namespace planner
