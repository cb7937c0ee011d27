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
  std::string token;       // that all ranks of the run know and nobody else; "": anybody is trusted
  int ranks_here = 0;      // on this host; 0: unknown
};

// Reads RANK, WORLD_SIZE, LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT and SHARDPLAN_TOKEN. Rank 0
// listens on MASTER_PORT, or on one of the eight ports after it when torchrun's agent has its own
// store there (TORCHELASTIC_USE_AGENT_STORE). Throws RunFault when a variable is missing, not a
// number, or a token that is easily guessed.
Meeting meeting();

}  // namespace runtime
