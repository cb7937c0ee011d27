// Detects whether a launcher (mpirun, srun, torchrun) started this process as one rank of several.
#pragma once

#include <optional>
#include <vector>

namespace runtime {

// The rank and world size from the environment variables of mpirun (Open MPI or PMI) or of a step
// of Slurm's srun; MPI is not called. Nothing when they launched torchrun, which launched this
// process: when TORCHELASTIC_RUN_ID is set next to torchrun's other variables, torchrun's count,
// here and in the functions below.
struct Launched {
  int rank = 0, world = 1;
};
std::optional<Launched> launched();

// The same from torchrun's variables (RANK, WORLD_SIZE, MASTER_ADDR). Such ranks connect through
// runtime/ranks/tcp_rendezvous.hpp.
std::optional<Launched> launched_by_torchrun();
// Either of them; torchrun's when its world has more than one process.
std::optional<Launched> one_of_several();

// This process's index among those of its machine, which selects its GPU; 0 when unknown.
int local_rank();

// The ranks on this machine: from srun's distribution (SLURM_STEP_TASKS_PER_NODE,
// SLURM_DISTRIBUTION: block or cyclic); under mpirun and torchrun consecutive ones; only this rank
// when unknown.
std::vector<int> ranks_here();

// The cores of this machine for each of its ranks, at least 1. A process that is one of several has
// one rank; otherwise it has `ranks`.
int cores_per_rank(int ranks);

// Call it before reporting a fault that other ranks find too and exiting: the launcher kills all
// ranks when the first exits, so higher ranks wait briefly for rank 0 to report.
void let_others_speak();

}  // namespace runtime
