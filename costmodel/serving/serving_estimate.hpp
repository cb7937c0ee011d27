// How a replica's plan serves a scenario: the facade.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "costmodel/serving/request_simulation.hpp"
#include "costmodel/serving/serving_memory.hpp"
#include "costmodel/serving/steady_state.hpp"

namespace costmodel {

struct ServingEstimate {
  ServingSizes sizes;
  std::int64_t devices = 0;  // of all replicas, those of prompts too
  WeightFormat weights = WeightFormat::bf16;
  ServingMemory memory;
  bool fits = false;  // weights, activations and one request; else nothing below is known
  double held = 0;    // requests of the mean length that a replica's cache holds
  // Over all replicas, from the simulation of each kind of them.
  double requests_per_s = 0, output_per_s = 0, total_per_s = 0;
  Latency ttft, tpot, e2e;
  double running = 0;          // requests that run in a replica that has any, on average
  StepParts token;             // a decode step of that batch: where a token's time goes
  Seconds stalled;             // tpot beyond that: prompts of others
  Seconds pass;                // one sequence alone: the least time of a token of this plan
  Seconds prompt;              // one prompt alone
  Seconds transfer;            // of a prompt's keys and values, of disaggregated plans
  Bytes sent;                  // ... and how many, from all devices of an instance
  double turning = 0;          // turning_batch
  double capacity = 0;         // requests a second that all replicas answer at most
  bool saturated = false;      // an open load above that: latencies grow without end
  std::int64_t simulated = 0;  // requests of a replica that the latencies are of; 0: closed form
  std::int64_t preempted = 0;
  double usd_per_million_output = 0;  // 0: no price known
  double usd_per_hour = 0;
  std::vector<std::string> notes;
  double per_device() const { return output_per_s / static_cast<double>(devices); }
};

// Throws ConfigError for a scenario that no cache holds: one request longer than it, and for a
// latency bound below what the hardware can.
ServingEstimate serving_estimate(const ServingScenario& scenario, const ServingSizes& sizes);

// The same of a plan with prompts and decoding on devices of their own.
ServingEstimate disaggregated_estimate(const ServingScenario& scenario);

// The one that the scenario's plan asks for.
ServingEstimate planned_estimate(const ServingScenario& scenario);

// Throws ConfigError for a bound below the least time that any plan of the cluster takes, and for
// weights kept on the host of a device that says no host bandwidth.
void require_possible(const ServingScenario& scenario);

// Throws ConfigError for pools that the plan says and that no devices have: sizes with a fault, or
// more devices than there are.
void require_pools(const ServingScenario& scenario);

// Whether the mean latencies keep the bound.
bool keeps(const ServingEstimate& estimate, const LatencyBound& bound);

// Whether tokens and dollars are those wanted.
bool reaches(const ServingEstimate& estimate, const ServingGoal& goal);

// The closed form of the same plan, for searches: no simulation, latencies and rates on average.
// `times`: of the same sizes, formats and engine; limits and load do not enter them.
ServingEstimate quick_estimate(const ServingScenario& scenario, const ServingSizes& sizes);
ServingEstimate quick_estimate(const ServingScenario& scenario, const ServingSizes& sizes,
                               const StepTimes& times);

// Latency over load: the closed form at 1, 2, 4, ... requests in flight in a replica.
struct LoadPoint {
  double in_flight = 0;  // over all replicas
  double requests_per_s = 0, output_per_s = 0;
  Seconds ttft, tpot;
};
std::vector<LoadPoint> load_curve(const ServingScenario& scenario, const ServingSizes& sizes);

}  // namespace costmodel
