// How a replica's plan serves a scenario: the facade.
#pragma once

#include "costmodel/serving/served_load.hpp"
#include "costmodel/serving/serving_memory.hpp"
#include "costmodel/serving/steady_state.hpp"

namespace costmodel {

struct ServingEstimate : ServedLoad {
  ServingSizes sizes;
  std::int64_t devices = 0;  // of all replicas, those of prompts too
  WeightFormat weights = WeightFormat::bf16;
  ServingMemory memory;
  bool fits = false;   // weights, activations and one request; else nothing else is known
  double held = 0;     // requests of the mean length that a replica's cache holds
  StepParts token;     // a decode step of that batch: where a token's time goes; with
  Seconds stalled;     // ... prompts of others it adds up to tpot
  Seconds pass;        // one sequence alone: the least time of a token of this plan
  Seconds prompt;      // one prompt alone
  Seconds transfer;    // of a prompt's keys and values, of disaggregated plans
  Bytes sent;          // ... and how many, from all devices of an instance
  double turning = 0;  // turning_batch
  double usd_per_million_output = 0;  // 0: no price known
  double usd_per_hour = 0;
  double per_device() const { return output_per_s / static_cast<double>(devices); }
};

// Throws ConfigError for a scenario that no cache holds: one request longer than it, and for a
// latency bound below what the hardware can.
ServingEstimate serving_estimate(const ServingScenario& scenario, const ServingSizes& sizes);

// The same of a plan with prompts and decoding on devices of their own; or its closed form.
ServingEstimate disaggregated_estimate(const ServingScenario& scenario, bool simulated = true);

// The one that the scenario's plan asks for.
ServingEstimate planned_estimate(const ServingScenario& scenario);

// Throws ConfigError for a bound below the least time that any plan of the cluster takes, and for
// weights kept on the host of a device that says no host bandwidth.
void require_possible(const ServingScenario& scenario);

// Throws ConfigError for pools that the plan says and that no devices have: sizes with a fault, or
// more devices than there are.
void require_pools(const ServingScenario& scenario);

// The closed form of the same plan, for searches: no simulation, latencies and rates on average.
// `times`: of the same sizes, formats and engine; limits and load do not enter them.
ServingEstimate quick_estimate(const ServingScenario& scenario, const ServingSizes& sizes,
                               const StepTimes& times);
inline ServingEstimate quick_estimate(const ServingScenario& s, const ServingSizes& sizes) {
  return quick_estimate(s, sizes, StepTimes(s.model, s.cluster, s.serving, sizes));
}

}  // namespace costmodel
