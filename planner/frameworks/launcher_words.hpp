// How many processes a launcher starts: torchrun's and Slurm's words, and #SBATCH lines.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "planner/exchange/shell_script.hpp"

namespace planner {

struct Launched {
  std::int64_t world_size = 0;  // processes, one a device; 0: not said
  std::int64_t per_node = 0;    // of them on a node; 0: not said
  std::int64_t nodes = 0;       // where the processes of one are not known
  bool by_variable = false;     // world_size is that of the script's WORLD_SIZE
  bool visible = false;         // world_size is that of the devices in CUDA_VISIBLE_DEVICES
};

// Of a world size by_variable.
inline constexpr std::string_view world_size_note =
    "WORLD_SIZE is taken as the number of devices; some clusters set it to that of nodes: then "
    "--set "
    "cluster.devices=N";

// Nodes and processes a node: of the launcher's words, else of the #SBATCH lines, else of Slurm's
// variables (`env | grep SLURM`); else the script's own WORLD_SIZE.
Launched launched_by(const ShellScript& script, const ShellWords& launcher);

// Of the variables that programs which launch themselves read: NPROC_PER_NODE and NNODES, else the
// devices that CUDA_VISIBLE_DEVICES lists. Those in front of the command go before the script's,
// which a later command's may be.
Launched launched_by_variables(const ShellScript& script, std::size_t command);

}  // namespace planner
