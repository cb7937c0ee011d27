// Requests through one replica, step by step: continuous batching (Yu et al. 2022, Orca, section
// 3.2) over a cache of blocks (Kwon et al. 2023, arXiv:2309.06180, section 4), with chunked prefill
// (Agrawal et al. 2024, arXiv:2403.02310, section 4) or prompts first. Deterministic.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "costmodel/serving/serving_spec.hpp"
#include "costmodel/serving/step_time.hpp"

namespace costmodel {

struct ServedRequest {
  double arrival = 0;  // seconds; of a closed load a request comes when an earlier one has ended
  double input = 0, output = 1;
  double ready = -1;  // when it is in the replica's queue; negative: by its start and the limits
};

// `count` requests with lengths of the scenario and, at `rate` a second, Poisson arrivals; without
// a rate all arrive at once. The same for the same arguments.
std::vector<ServedRequest> drawn_requests(const LengthSpec& input, const LengthSpec& output,
                                          double rate, std::int64_t count);

struct Latency {
  double mean = 0, p95 = 0;  // seconds
};
// Of more requests than are answered: each waits longer than the one before it.
inline constexpr double without_end = std::numeric_limits<double>::infinity();
Latency latency_of(std::vector<double> values);

struct ReplicaLimits {
  ServingLimits serving;
  double blocks = 0;             // of the cache
  double prefix_hit_share = 0;   // of prompt tokens that are not prefilled
  bool reserves_output = false;  // see EngineSpec
  std::int64_t concurrency = 0;  // of a closed load; 0: requests come when they arrive
  bool full_run = false;  // measure from the first arrival to the last end, as a benchmark of
                          // so many requests does; else without start and end of the run
  // Of a closed load, seconds from a request's start to the replica's queue, which its latencies
  // have in them, and at least between two that come to it: prompts prefilled elsewhere.
  double delay = 0, turn = 0;
};

struct RequestTimes {
  std::vector<double> ttft, tpot, e2e;  // of each request that is measured
};

// Rates, latencies from a client's side, and of a replica the requests that run, over time, and the
// cached tokens of one.
struct ServedFigures {
  double requests_per_s = 0, output_per_s = 0, total_per_s = 0;  // tokens
  Latency ttft, tpot, e2e;
  double running = 0, context = 0;
  std::int64_t preempted = 0;
};

struct ServedRun : ServedFigures {
  double seconds = 0;
  std::int64_t requests = 0;  // of the run, measured or not
  std::int64_t steps = 0;
  double pace = 0;  // requests a second, without start and end of the run
  RequestTimes times;
};

using StepClock = std::function<StepParts(const StepLoad&)>;

// Every request must fit into the cache alone.
ServedRun serve(const std::vector<ServedRequest>& requests, const ReplicaLimits& limits,
                const StepClock& clock);

}  // namespace costmodel
