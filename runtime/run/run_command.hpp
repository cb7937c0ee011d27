// `shardplan run`: executes a scenario's plan and compares its measurements with the prediction.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "costmodel/estimate/evaluator.hpp"
#include "costmodel/scenario/scenario.hpp"
#include "runtime/training/measurement.hpp"

namespace runtime {

enum class BackendKind { threads, mpi, tcp, emulated, cuda };
inline constexpr std::array<std::string_view, 5> backend_names{"threads", "mpi", "tcp", "emulated",
                                                               "cuda"};

// The precision that a backend computes in: CPUs in fp32, whatever the scenario requests; GPUs in
// fp32, or in bf16, fp16 or fp8 with fp32 gradients and fp32 master weights.
constexpr costmodel::Precision computed_in(BackendKind backend, costmodel::Precision said) {
  using costmodel::Precision;
  if (backend != BackendKind::cuda || said == Precision::fp32) return Precision::fp32;
  return said == Precision::fp16 || said == Precision::fp8 ? said : Precision::bf16;
}

// Sets the training's precision to what the backend computes; returns a sentence when the scenario
// asks for another, else "".
std::string compute_as_can_be(BackendKind backend, costmodel::TrainingSpec& training);

struct RunRequest {
  costmodel::Scenario scenario;
  BackendKind backend = BackendKind::threads;
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

// The scenario's plan. Throws ConfigError when a search would have to choose some of its keys.
costmodel::ParallelPlan executed_plan(const costmodel::Scenario& scenario);

}  // namespace runtime
