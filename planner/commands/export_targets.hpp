// The frameworks that a plan is exported to: a row each, so that another one is its own file and a
// row.
#pragma once

#include <span>
#include <string_view>

#include "planner/exchange/exported.hpp"

namespace planner {

// Of all rows, for the help of --to.
inline constexpr std::string_view export_target_names =
    "megatron, megatron-bridge, nemo, torchtitan, torchtitan-python, deepspeed, slurm, kubernetes";

struct ExportTarget {
  std::string_view name;    // of --to
  std::string_view writes;  // in text, and as JSON
  Exported (*exported)(const costmodel::Scenario& scenario, const costmodel::ParallelPlan& plan);
};

std::span<const ExportTarget> export_targets();

}  // namespace planner
