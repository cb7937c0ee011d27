// Where the ranks of a torchrun job meet: this process's rank, the run it belongs to, and the
// address of rank 0.
#pragma once

#include <string>
#include <vector>

namespace runtime {

// Read from torchrun's environment variables.
struct Meeting {
  int rank = 0, world = 1;
  std::string host;        // MASTER_ADDR, the host of rank 0
  std::vector<int> ports;  // candidates: rank 0 listens on the first free one
  std::string run;         // identifies this run among others that use the same ports
};

// Reads RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT. Rank 0 listens on MASTER_PORT, or on one of
// the eight ports after it when torchrun's agent has its own store there
// (TORCHELASTIC_USE_AGENT_STORE). Throws RunFault when a variable is missing or not a number.
Meeting meeting();

}  // namespace runtime
