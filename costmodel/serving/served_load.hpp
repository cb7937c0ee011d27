// A scenario's load over the replicas of a plan: each kind of replica is simulated once, and what
// they do is put together.
#pragma once

#include <cstdint>
#include <optional>
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

// Of the load those in flight, of requests at once and of arrivals at most as many as run.
MeanShare in_flight_of(const ServingSpec& serving, int dp);

// Of a run of so many requests from its first arrival to its last end.
struct RunFigures {
  double output_per_s = 0;
  Latency ttft, tpot, e2e;
};

// Rates are of all replicas, latencies from a client's side.
struct ServedLoad {
  double requests_per_s = 0, output_per_s = 0, total_per_s = 0;  // tokens
  Latency ttft, tpot, e2e;
  double running = 0, context = 0;  // of a busy replica: requests, and cached tokens of one
  double busy = 0;                  // replicas that have requests
  double capacity = 0;              // requests a second at most
  // More arrive: rates and tpot are those of the capacity, and ttft and e2e are without_end.
  bool saturated = false;
  std::optional<RunFigures> run;  // ... of as many as the scenario has, whose batches never fill
  std::int64_t simulated = 0;     // requests of a replica; 0: closed form
  std::int64_t preempted = 0;
};

// How requests come to the replicas where prompts have devices of their own: so much later, and no
// faster than those take them; 0: as they start.
struct WayIn {
  Seconds delay;
  double most_per_s = 0;  // of all replicas
};

// Of an open load what arrives is answered, up to the capacity: what replicas answer while more
// requests wait than run. A run of more requests than are simulated goes on at the pace of its
// middle.
ServedLoad served_load(const ServingSpec& serving, const ServingMemory& memory, int dp,
                       const StepTimes& times, const WayIn& way);

}  // namespace costmodel
