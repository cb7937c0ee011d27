// The frameworks that a plan is exported to: a row each, so that another one is its own file and a
// row.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "planner/exchange/exported.hpp"
#include "planner/frameworks/launcher.hpp"

namespace planner {

// Of all rows, for the help of --to.
inline constexpr std::string_view export_target_names =
    "megatron, megatron-bridge, nemo, torchtitan, torchtitan-python, deepspeed, slurm, kubernetes, "
    "axolotl, llama-factory, accelerate, nanotron";

// Which frozen base with adapters a target has words for: none, one of 16 bits, of 4 bits too.
enum class AdapterWords : std::uint8_t { none, plain, nf4 };

struct ExportTarget {
  std::string_view name;    // of --to
  std::string_view writes;  // in text, and as JSON
  Exported (*exported)(const costmodel::Scenario& scenario, const costmodel::ParallelPlan& plan);
  AdapterWords adapters = AdapterWords::none;
  // In the words of a release; none where the framework has one version here.
  Exported (*exported_for)(const costmodel::Scenario& scenario, const costmodel::ParallelPlan& plan,
                           const std::string& version) = nullptr;
  // The words of the script for how long it runs, and those for ten iterations.
  std::string_view steps, ten_steps;
  Launcher starter = Launcher::torchrun;  // without --launcher
  std::string_view stack = {};            // that runs it, where a scenario names none
};

std::span<const ExportTarget> export_targets();

}  // namespace planner
