// `shardplan run`: executes a scenario's plan and compares its measurements with the prediction.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "costmodel/estimate/estimate.hpp"
#include "costmodel/scenario/scenario.hpp"
#include "runtime/run/backends.hpp"
#include "runtime/training/measurement.hpp"

namespace runtime {

// Sets the training's precision to what the backend computes; returns a sentence when the scenario
// asks for another, else "".
std::string compute_as_can_be(const Backend& backend, costmodel::TrainingSpec& training);

struct RunRequest {
  costmodel::Scenario scenario;
  const Backend* backend = &backend_named("threads");
  int iterations = 3;
  std::uint64_t seed = 1;
  std::size_t memory_limit = 0;  // bytes per rank; 0: unlimited
  bool tf32 = false;             // cuda: products round their operands to TF32
  int virtual_devices = 1;       // cuda: per GPU
  bool virtual_clock = false;    // emulated: no sleeping, the simulator's times
  costmodel::Seconds patience{60};
  std::function<void(int, costmodel::Seconds)> progress;  // on rank 0
  // Called once, on rank 0, when the run ends early by a fault, SIGINT or SIGTERM; possibly on
  // another thread. After a signal the process ends.
  std::function<void(const struct RunResult&)> ended_early;
  // Called on rank 0 between iterations, at most once per second, with the completed iterations.
  std::function<void(const struct RunResult&)> so_far;
};

struct RunResult {
  std::string backend;
  costmodel::Scenario scenario;  // as executed and predicted (compute_as_can_be)
  costmodel::ParallelPlan plan;
  int iterations = 0;  // completed ones; 0: nothing was measured
  RunSummary measured;
  costmodel::Estimate predicted;
  // The prediction at the measured pace of the machine, when a calibrated profile provides one.
  std::optional<costmodel::Estimate> at_pace;
  bool computed = true;  // false: emulated, without losses and memory
  std::vector<std::string> notes;
  bool interrupted = false;  // it ended early, by `cause`
  std::string cause;
};

// Returns the result on rank 0 (always, with one process) and nothing on other processes. Throws
// ConfigError when the plan cannot be executed and RunFault when a rank fails; under MPI a failing
// rank ends the process with status 4.
std::optional<RunResult> run(const RunRequest& request);

// `run` for a backend whose ranks compute.
std::optional<RunResult> train_plan(const RunRequest& request);

// The scenario's plan. Throws ConfigError when a search would have to choose some of its keys.
costmodel::ParallelPlan executed_plan(const costmodel::Scenario& scenario);

}  // namespace runtime
