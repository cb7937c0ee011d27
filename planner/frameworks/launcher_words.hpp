// How many processes a launcher starts: torchrun's and Slurm's words, and #SBATCH lines.
#pragma once

#include <cstdint>

#include "planner/exchange/shell_script.hpp"

namespace planner {

struct Launched {
  std::int64_t world_size = 0;  // processes, one a device; 0: not said
  std::int64_t per_node = 0;    // of them on a node; 0: not said
};

// Nodes and processes a node: of the launcher's words, else of the #SBATCH lines, else of Slurm's
// variables (`env | grep SLURM`); else the script's own WORLD_SIZE.
Launched launched_by(const ShellScript& script, const ShellWords& launcher);

}  // namespace planner
