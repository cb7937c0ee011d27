// Whether this process was started as one rank of several.
#pragma once

#include <optional>

namespace runtime {

// Which rank of how many this process is, as whoever started it says in the environment: mpirun
// (Open MPI's or PMI variables) or a step of Slurm's srun. MPI is not called.
struct Launched {
  int rank = 0, world = 1;
};
std::optional<Launched> launched();

}  // namespace runtime
