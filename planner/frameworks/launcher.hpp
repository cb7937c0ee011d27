// Who starts a launch script of torchrun on its nodes: a user, Slurm, or Kubernetes.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "costmodel/plan/parallel_plan.hpp"
#include "costmodel/scenario/scenario.hpp"

namespace planner {

enum class Launcher : std::uint8_t { torchrun, slurm, kubernetes };
inline constexpr std::array<std::string_view, 3> launcher_names{"torchrun", "slurm", "kubernetes"};

// What a site calls its own, of --site KEY=VALUE; what is not given is REPLACE in the script.
struct Site {
  std::string queue = "REPLACE";   // Slurm's partition, a LocalQueue of Kueue
  std::string account;             // Slurm's; empty: the user's own
  std::string time;                // Slurm's limit; empty: the queue's
  std::string image = "REPLACE";   // of the containers of Kubernetes
  std::string folder = "REPLACE";  // where the framework is in them
  std::string rdma = "REPLACE";    // the resource that their network adapters are: rdma/hca
};

// Throws costmodel::ConfigError for a key that is none, and for a value that is no plain word.
Site site_of(const std::vector<std::string>& settings);

// The name of the jobs: the scenario's, in letters that Kubernetes takes.
std::string job_name(const costmodel::Scenario& scenario);

// Throws costmodel::ConfigError for a name that is none.
Launcher launcher_of(std::string_view name);

// The script for the launcher: as it is; as a batch script of Slurm, which starts itself on each
// node (sbatch); as an indexed Job of Kubernetes with the script in a ConfigMap and a headless
// Service by which its pods find the first (kubectl apply). Throws costmodel::ConfigError when the
// script starts its processes by another program than torchrun.
std::string with_launcher(const std::string& script, Launcher launcher,
                          const costmodel::Scenario& scenario, const costmodel::ParallelPlan& plan,
                          const Site& site = {});

// What a launch leaves to fill in; empty: nothing.
std::string launcher_note(const std::string& script);

// The script in such a Job; nothing for any other text. Throws costmodel::ConfigError when it is no
// YAML.
std::optional<std::string> script_of_job(const std::string& text, const std::string& file);

}  // namespace planner
