// `shardplan run` of a scenario of serving: ranks on CPUs serve one batch of prompts, and time,
// memory and bytes are held against the model of serving.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "costmodel/cost/collective.hpp"
#include "costmodel/serving/step_time.hpp"
#include "runtime/run/backends.hpp"
#include "runtime/run/comparison.hpp"
#include "runtime/run/served_job.hpp"

namespace runtime {

struct ServeRequest {
  costmodel::Value root;  // the scenario's tree
  costmodel::ServingScenario scenario;
  const Backend* backend = &backend_named("threads");  // one that serves()
  int iterations = 3;                                  // batches; the first one warms up
  std::uint64_t seed = 1;
  std::size_t memory_limit = 0;  // bytes per rank; 0: unlimited
  costmodel::Seconds patience{60};
  std::function<void(int, costmodel::Seconds)> progress;
};

// Of a rank of a stage: bytes of its weights and of its cache at its highest, and what it sends for
// the whole batch, the mean over the stage's ranks.
struct StageCounts {
  double weights = 0, cache = 0;
  costmodel::Traffic traffic;
};

// Seconds until all requests have their first token, and of a token after it.
struct ServeTimes {
  costmodel::Seconds first_token, token;
};

struct ServeResult {
  std::string backend;
  costmodel::ServingScenario scenario;  // as executed and predicted
  ServedJob job;
  int iterations = 0;
  ServeTimes predicted, measured;  // measured: medians of all batches but the first
  // The same from operators, collectives and transfers, each timed alone on this machine, at the
  // pace of the batches; nothing after the first batch alone. The first token's is 0 where a part's
  // prompts are no single pass.
  std::optional<ServeTimes> at_pace;
  double pace = 0;                           // of the batches relative to that timing
  std::vector<StageCounts> ledger, counted;  // by stage
  std::vector<std::int64_t> activations;     // bytes by stage, at their highest
  std::vector<std::int64_t> tokens;          // [dp · requests][output]
  std::vector<std::string> notes;
};

// Whether the backend's devices have attention to cached keys: CPUs.
bool serves(const Backend& backend);

// Returns the result on rank 0 and nothing on other processes. Throws ConfigError when the plan
// cannot be executed and RunFault when a rank fails; under MPI a failing rank ends the process.
std::optional<ServeResult> serve_plan(const ServeRequest& request);

// The same for a job, of which only what was counted and measured is known.
std::optional<ServeResult> serve_job(const ServedJob& job, const ServeRequest& request);

// Time a token, the first token, weights, cache and bytes of every stage.
std::vector<Compared> compare(const ServeResult& result);

// How the time of a token misses `limit_pct`, at its pace where that is known; "" when it does not.
std::string limit_missed(const ServeResult& result, double limit_pct);

}  // namespace runtime
