// Which rank of which run a process that torchrun started is, and where it finds the others.
#pragma once

#include <string>
#include <vector>

namespace runtime {

// What the environment says of it.
struct Meeting {
  int rank = 0, world = 1;
  std::string host;        // MASTER_ADDR: rank 0's
  std::vector<int> ports;  // where rank 0 listens: on the first that is free
  std::string run;         // tells this run from others that use the same ports
};

// RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT. Rank 0 listens on MASTER_PORT, or on one of the
// eight behind it where torchrun's agent has its store there (TORCHELASTIC_USE_AGENT_STORE). Throws
// RunFault when one of them is missing or no number.
Meeting meeting();

}  // namespace runtime
