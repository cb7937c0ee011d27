// What the trace of one run decides of the cost model's constants: `shardplan calibrate
// --from-trace`.
//
// By kind of kernel: log(measured / predicted), with the noise of a kind that takes little of the
// iteration. What that means for other runs: costmodel/machine/traced_run.hpp.
//
// The host's time of a launch, where the device waited for the host: a profiler slows the host down
// by what it records, so that much is taken off first. It is held by the stack's own, as a normal
// distribution of logarithms. Where the device did not wait, nothing is learnt of it.
//
// The fixed cost of an iteration stays the stack's: profilers lengthen it by an unknown part.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "costmodel/plan/parallel_plan.hpp"
#include "costmodel/scenario/scenario.hpp"
#include "planner/accuracy/own_runs.hpp"
#include "planner/traces/trace_times.hpp"

namespace planner {

// A run with its trace, of one rank or in the mean of several.
struct ReadTrace {
  std::string file;
  std::vector<std::string> more_ranks;  // files of other ranks
  std::string profiler, device;
  bool has_launchers = false, has_sizes = false, marked = false;
  TraceTimes times;
  int ranks = 0;  // of the job, as recorded; 0: not
  int rank = 0;   // whose `file` is
  // By KernelKind, as in a training that goes on: see `rested`.
  std::array<costmodel::Seconds, costmodel::kernel_kind_count> steady() const;
};

// Seconds of an iteration by kind, predicted; the last: in no kernel.
struct PredictedTimes {
  std::array<double, costmodel::kernel_kind_count> kinds{};
  std::vector<PartTime> parts;
  costmodel::Seconds iteration;
  double attentions = 0;  // forward passes of attention in an iteration, recomputed ones too
};
// `rank`: its kernels are those of its stage.
PredictedTimes predicted_times(const costmodel::Scenario& scenario,
                               const costmodel::ParallelPlan& plan, int rank = 0);

Attributor attributor_of(const costmodel::Scenario& scenario, const costmodel::ParallelPlan& plan);

struct FittedTrace {
  ReadTrace read;
  PredictedTimes before, after;  // without any trace, and with what was fitted
  costmodel::TracedRun run;
  // What the iteration takes without a profiler, as far as the trace shows: its kernels and the
  // stack's fixed cost, or where the device waited for the host, the host's time.
  costmodel::Seconds unprofiled;
  bool host_bound = false;
  // Host time of a kernel that gives `unprofiled`; 0: not decided. Where the device sets the pace,
  // a bound: the stack's would have made it wait.
  costmodel::Seconds launch;
};

// The share of an iteration beyond the fixed cost in which the device waits, from which on the host
// is taken to set the pace.
inline constexpr double waiting_share = 0.05;

// Host time of an event that is recorded, s: two runs on the host of an H100 whose pace the host
// sets took (302.4 - 240.0) ms longer under torch.profiler with shapes for 55,507 records, and
// (386.7 - 327.4) ms for 45,181 (configs/evidence/extra/pytorch-h100.yaml, p-8b-lora-2k and
// t-0.5b-4k-eager, the shorter of two recorded iterations), 1.12 and 1.31 us.
inline constexpr costmodel::Seconds record_cost{1.2e-6};

// How many times as long kernels take in iterations that follow one another as in a trace whose
// host waits for the device after each, by KernelKind. Geometric means over seven runs of an H100
// that were profiled in both ways (2026-11-26; configs/evidence/extra/pytorch-h100.yaml has the
// second): products 1.016 to 1.031, attention 0.976 to 1.041, all others 0.995 to 1.004. That only
// kernels bound by arithmetic differ points to clocks under the power limit; nothing measured
// these.
inline constexpr std::array<double, costmodel::kernel_kind_count> rested{1.024, 1.007, 1.007, 1,
                                                                         1,     1,     1,     1};

// `scenario`: without traces of its cluster.
FittedTrace fit_trace(const costmodel::Scenario& scenario, const costmodel::ParallelPlan& plan,
                      ReadTrace trace);

// Throws a ConfigError where a trace is of another job or device: by its products' sizes, times and
// types of inputs, by passes of attention, by kernels of a compiler, by the name of the device.
void refuse_other_job(const FittedTrace& trace, const costmodel::Scenario& scenario);

// The constants of all of them, which are of one stack; `prior`: the stack's time of a launch.
costmodel::OwnRuns traced_constants(const std::vector<FittedTrace>& traces,
                                    const std::string& stack, costmodel::Seconds prior);

// The scenario with these constants.
costmodel::Scenario with_constants(costmodel::Scenario scenario, const costmodel::OwnRuns& own);

}  // namespace planner
