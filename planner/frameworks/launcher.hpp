// Who starts a launch script of torchrun on its nodes: a user, Slurm, or Kubernetes.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "costmodel/plan/parallel_plan.hpp"
#include "costmodel/scenario/scenario.hpp"

namespace planner {

enum class Launcher : std::uint8_t { torchrun, slurm, kubernetes };
inline constexpr std::array<std::string_view, 3> launcher_names{"torchrun", "slurm", "kubernetes"};

// Throws costmodel::ConfigError for a name that is none.
Launcher launcher_of(std::string_view name);

// The script for the launcher: as it is; as a batch script of Slurm, which starts itself on each
// node (sbatch); as an indexed Job of Kubernetes with the script in a ConfigMap and a headless
// Service by which its pods find the first (kubectl apply). Throws costmodel::ConfigError when the
// script starts its processes by another program than torchrun.
std::string with_launcher(const std::string& script, Launcher launcher,
                          const costmodel::Scenario& scenario, const costmodel::ParallelPlan& plan);

// What a launch for Kubernetes leaves to fill in; empty for others.
std::string_view launcher_note(Launcher launcher);

// The script in such a Job; nothing for any other text. Throws costmodel::ConfigError when it is no
// YAML.
std::optional<std::string> script_of_job(const std::string& text, const std::string& file);

}  // namespace planner
