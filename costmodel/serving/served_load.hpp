// A scenario's load over the replicas of a plan: each kind of replica is simulated once, and what
// they do is put together.
#pragma once

#include <algorithm>
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
inline MeanShare mean_share(std::int64_t all, int replicas) {
  const auto some = static_cast<double>(all), n = static_cast<double>(replicas);
  return {std::max(1.0, some / n), std::min(some, n)};
}

// Of the load those in flight, of requests at once and of arrivals at most as many as run.
MeanShare in_flight_of(const ServingSpec& serving, int dp);

// Rates are of all replicas, what runs is of a busy one.
struct ServedLoad : ServedFigures {
  double busy = 0;      // replicas that have requests
  double capacity = 0;  // requests a second at most
  // More arrive: rates and tpot are those of the capacity, and ttft and e2e are without_end.
  bool saturated = false;
  // ... of as many as the scenario has, from the first arrival to the last end: batches never fill
  std::optional<ServedFigures> run;
  std::int64_t simulated = 0;  // requests of a replica; 0: closed form
  // Tokens follow the requests.
  void answer(const ServingSpec& serving, double requests_a_second);
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
