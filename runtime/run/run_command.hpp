// `shardplan run`: executes a scenario's plan and holds what it measures against the prediction.
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

// CPUs compute in fp32 whatever a scenario says of the GPUs it was written for; GPUs in fp32, or in
// bf16, fp16 or fp8 beside fp32 gradients and weights of the optimizer's.
constexpr costmodel::Precision computed_in(BackendKind backend, costmodel::Precision said) {
  using costmodel::Precision;
  if (backend != BackendKind::cuda || said == Precision::fp32) return Precision::fp32;
  return said == Precision::fp16 || said == Precision::fp8 ? said : Precision::bf16;
}

// Makes the training what the backend computes; a sentence on what the scenario says otherwise, or
// "".
std::string compute_as_can_be(BackendKind backend, costmodel::TrainingSpec& training);

struct RunRequest {
  costmodel::Scenario scenario;
  BackendKind backend = BackendKind::threads;
  int iterations = 3;
  std::uint64_t seed = 1;
  std::size_t memory_limit = 0;  // bytes a rank may use; 0: none
  bool tf32 = false;             // cuda: products round what they multiply
  int virtual_devices = 1;       // cuda: that each GPU is cut into
  bool virtual_clock = false;    // emulated: no waiting, the simulator's own times
  costmodel::Seconds patience{60};
  std::function<void(int, costmodel::Seconds)> progress;  // of rank 0
  // Hears, on rank 0 and once, of a run that ends before its time, by a fault or by SIGINT or
  // SIGTERM; perhaps on a thread of its own. After a signal the process ends.
  std::function<void(const struct RunResult&)> ended_early;
  // Hears, on rank 0 and between iterations, of those that were whole, at most once a second.
  std::function<void(const struct RunResult&)> so_far;
};

struct RunResult {
  std::string backend;
  costmodel::ParallelPlan plan;
  int iterations = 0;  // whole ones; 0: nothing was measured
  RunSummary measured;
  costmodel::Estimate predicted;
  // At the pace the machine really had, where a calibrated profile lets that be said.
  std::optional<costmodel::Estimate> at_pace;
  bool computed = true;  // false: emulated, without losses and memory
  std::vector<std::string> notes;
  bool interrupted = false;  // it ended before its time, by `cause`
  std::string cause;
};

// On rank 0 (of one process: always); nothing on other processes' ranks. Throws ConfigError when
// the plan cannot be executed, RunFault when a rank fails; under MPI a failing rank ends the
// process with status 4.
std::optional<RunResult> run(const RunRequest& request);

// The one plan of a scenario. Throws ConfigError where it has keys left to a search.
costmodel::ParallelPlan executed_plan(const costmodel::Scenario& scenario);

}  // namespace runtime
