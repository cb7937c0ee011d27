// A scenario's `plan` map, read and written.
#pragma once

#include "costmodel/scenario.hpp"

namespace costmodel {

// Throws ConfigError.
PlanRequest read_plan(const Value& map);

// The stages of a request that lists them, with what they leave out as the plan has it; without a
// dp of its own the plan takes that of its widest stage, whose replicas micro_batch is for. Throws
// ConfigError.
void settle_stages(const PlanRequest& request, ParallelPlan& plan);

}  // namespace costmodel
