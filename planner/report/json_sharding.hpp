// A stage's sharding as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "planner/sharding/stage_sharding.hpp"

namespace planner {

nlohmann::ordered_json sharding_json(const StageSharding& sharding);

}  // namespace planner
