// A scenario's load over the replicas of a plan: each kind of replica is simulated once, and what
// they do is put together.
#pragma once

#include <cstdint>
#include <vector>

#include "costmodel/serving/request_simulation.hpp"
#include "costmodel/serving/serving_memory.hpp"
#include "costmodel/serving/step_time.hpp"

namespace costmodel {

// `all` clients or requests over `replicas` as they are: some have one more than others, and of
// fewer than replicas the rest have none and are left out.
struct ClientShare {
  int replicas = 0;
  std::int64_t share = 0;  // of each
};
std::vector<ClientShare> spread(std::int64_t all, int replicas);

// Clients or requests of a busy replica on average, and how many are busy.
struct MeanShare {
  double share = 1, busy = 1;
};
MeanShare mean_share(std::int64_t all, int replicas);

struct ServedLoad {
  double requests_per_s = 0, output_per_s = 0, total_per_s = 0;  // tokens, of all replicas
  Latency ttft, tpot, e2e;
  double running = 0, context = 0;  // of a busy replica: requests, and cached tokens of one
  double busy = 0;                  // replicas that have requests
  double capacity = 0;              // requests a second at most, of an open load; 0: a closed one
  bool saturated = false;           // more arrive
  std::int64_t simulated = 0;       // requests of a replica
  std::int64_t preempted = 0;
};

// Of an open load without end: what arrives is answered, up to the capacity, which is what a
// replica answers while more requests wait than run. Above it the latencies are of the first
// requests alone, for they grow with every further one.
ServedLoad served_load(const ServingSpec& serving, const ServingMemory& memory, int dp,
                       const StepTimes& times);

}  // namespace costmodel
