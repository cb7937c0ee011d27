// A plan, and its evaluation, in the planner's JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "costmodel/estimate/estimate.hpp"
#include "costmodel/estimate/training_run.hpp"
#include "costmodel/scenario/scenario.hpp"
#include "planner/diagnosis/remedies.hpp"
#include "planner/search/sharded_stage.hpp"

namespace planner {

// [{"change", "set": ["plan.micro_batch=2"], "iteration_s", "peak_bytes", "fits_probability",
// "plan"}], those that take least time of the devices for a token first.
nlohmann::ordered_json fitting_changes_json(const std::vector<Remedy>& remedies);

// costmodel::plan_json; but for a plan with `stages`, each key that a stage can have (tp, cp,
// cp_comm, ep, etp, recompute, zero) holds the common value of all stages, or null.
nlohmann::ordered_json printed_plan(const costmodel::Estimate& estimate);

// Days, device hours, cost (null: no price known) and energy of a whole run.
nlohmann::ordered_json training_run_json(const costmodel::TrainingRun& run, double tokens);

// What `evaluate` prints of a plan, an entry of `plan`'s plans.
nlohmann::ordered_json evaluation_json(const costmodel::Estimate& estimate,
                                       const costmodel::Scenario& scenario);

// Of a stage's operators.
nlohmann::ordered_json sharding_json(const ShardedStage& stage);

}  // namespace planner
