// What torchtitan refuses, checked before a plan is exported to it: its own assertions and those of
// torch.distributed.pipelining, and what its configuration has no word for.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "costmodel/plan/parallel_plan.hpp"
#include "costmodel/scenario/scenario.hpp"

namespace planner {

// toml: configuration files, of torchtitan 0.2.2 and before. python: functions that return a
// Trainer.Config, which took their place in 2026-02 (PR #2386); names as of late 2026.
enum class TorchtitanVersion : std::uint8_t { toml, python };

// The name that torchtitan (torch.distributed.pipelining) has for the plan's schedule; empty for
// none.
std::string_view torchtitan_schedule(const costmodel::ParallelPlan& plan);

// Empty when torchtitan can run the plan. Sources: torchtitan/distributed/parallel_dims.py and
// pipeline_parallel.py, torchtitan/models/llama3/infra/parallelize.py and
// torchtitan/components/quantization of 0.2.x;
// torchtitan/config/validation.py of late 2026; torch/distributed/pipelining/schedules.py. Never
// throws.
std::vector<costmodel::Violation> torchtitan_violations(const costmodel::Scenario& scenario,
                                                        const costmodel::ParallelPlan& plan,
                                                        TorchtitanVersion version);

}  // namespace planner
