// Model states of plans that ZeRO 2 or 3 shards: Shardplan's next to those of DeepSpeed's own
// estimators, and what reading the model takes of the host before it is sharded.
#pragma once

#include <vector>

#include "costmodel/base/units.hpp"
#include "costmodel/estimate/estimate.hpp"
#include "costmodel/scenario/scenario.hpp"
#include "planner/report/explain_stages.hpp"

namespace planner {

// What DeepSpeed's estimators are asked: sizes, and what is kept on the host.
struct ModelStatesAsked {
  double parameters = 0, largest_module = 0;  // numbers
  int zero = 3, devices_per_node = 1, nodes = 1;
  bool optimizer_on_host = false, parameters_on_host = false;
  bool sharded_from_start = true;  // zero.Init: no process ever holds the model
};
struct ModelStatesNeeded {
  costmodel::Bytes device, host;  // of a device; of a node, buffers included
};
// estimate_zero2_model_states_mem_needs (deepspeed/runtime/zero/stage_1_and_2.py) and
// estimate_zero3_model_states_mem_needs (stage3.py), with their additional_buffer_factor of 1.5, as
// they are since DeepSpeed 0.14.3 (#5099).
ModelStatesNeeded deepspeed_estimate(const ModelStatesAsked& asked);

// Group "model states", of plans without another dimension whose stack can keep parameters on the
// host.
std::vector<Explained> explained_model_states(const costmodel::Estimate& estimate,
                                              const costmodel::Scenario& scenario,
                                              costmodel::Evaluator& evaluator);

}  // namespace planner
