// The backends of `shardplan run`, one record each: its name, what it says of itself, how its ranks
// start, what they compute in and on which devices.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "costmodel/base/precision.hpp"
#include "costmodel/plan/parallel_plan.hpp"

namespace runtime {

struct ComputeBackend;
struct RunRequest;
struct RunResult;
class EarlyEnd;
class Transport;

// Runs `program` as each rank of this process. Rank 0 reports to `end` what ends the run early.
// Throws RunFault.
using StartRanks = void (*)(const RunRequest& request, const costmodel::ParallelPlan& plan,
                            EarlyEnd& end, const std::function<void(Transport&)>& program);

struct Backend {
  std::string_view name;
  std::string_view help;  // a sentence without its full stop
  // Why it cannot be a rank that torchrun started; empty: it can.
  std::string_view not_under_torchrun;
  std::optional<RunResult> (*perform)(const RunRequest& request);
  // The precision it computes in, or predicts, where the scenario says `said`: CPUs fp32 whatever
  // is said; GPUs fp32, or bf16, fp16 or fp8 with fp32 gradients and fp32 master weights.
  costmodel::Precision (*computed_in)(costmodel::Precision said);
  // The rest is null where ranks wait and do not compute.
  const ComputeBackend& (*devices)();
  StartRanks start;
  // The ranks whose memory is this machine's.
  std::vector<int> (*ranks_of_machine)(const costmodel::ParallelPlan& plan);
};

std::span<const Backend> backends();

// `name` is one of them.
const Backend& backend_named(std::string_view name);

// That of a run that names none: of the ranks that mpirun, srun or torchrun started, else threads.
const Backend& usual_backend();

// Throws RunFault when torchrun started this process and the backend would not run it as that rank.
void require_start(const Backend& backend);

}  // namespace runtime
