// Other shardings inside the stages of a plan: what the integer program finds for the stage that
// the iteration waits for, and the plan that this amounts to, priced as an iteration.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "costmodel/scenario/scenario.hpp"
#include "planner/sharding/sharded_plan.hpp"
#include "planner/sharding/stage_sharding.hpp"

namespace planner {

struct ShardedStage {
  StageSharding sharding;
  std::optional<ShardedPlan> as_plan;           // the nearest that the scenario and its stack allow
  std::optional<costmodel::Estimate> estimate;  // of that plan
  std::optional<ShardedPlan> refused;           // a nearer plan that they do not allow ...
  std::string reason;                           // ... and why not
  bool same = false;                            // as_plan is the plan itself
  bool fits = false;                            // as_plan, within the search's limit
  bool better = false;  // as_plan fits and is faster than the plan by more than it takes to say
};

// `plan` has one pipeline of stages of the same sizes; encoder-decoder models are not for it.
ShardedStage shard_plan(const costmodel::Scenario& scenario, const costmodel::Estimate& plan,
                        costmodel::Evaluator& evaluator, const std::function<bool()>& expired = {});

}  // namespace planner
