// Whether this process was started as one rank of several.
#pragma once

#include <optional>
#include <vector>

namespace runtime {

// Which rank of how many this process is, as whoever started it says in the environment: mpirun
// (Open MPI's or PMI variables) or a step of Slurm's srun. MPI is not called. Nothing where those
// started torchrun, and that this process: where TORCHELASTIC_RUN_ID stands beside torchrun's other
// variables, these hold here and below.
struct Launched {
  int rank = 0, world = 1;
};
std::optional<Launched> launched();

// The same as torchrun says it (RANK, WORLD_SIZE, MASTER_ADDR): such ranks find one another by
// runtime/ranks/tcp_rendezvous.hpp.
std::optional<Launched> launched_by_torchrun();
// Either; torchrun's where the process is not alone.
std::optional<Launched> one_of_several();

// Which of the processes of its machine this one is, so that each takes a GPU of its own; 0 where
// nobody says.
int local_rank();

// The ranks that run on this machine: as srun dealt them out (SLURM_STEP_TASKS_PER_NODE,
// SLURM_DISTRIBUTION: block or cyclic), under mpirun and torchrun consecutive ones; this one alone
// where nobody says.
std::vector<int> ranks_here();

// To be called before a rank says a fault that the others find too and ends with a status: the
// first to end has the others ended, so that the higher ranks wait a little for rank 0.
void let_others_speak();

}  // namespace runtime
