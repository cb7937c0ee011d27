#include "runtime/run_command.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "costmodel/error.hpp"
#include "costmodel/simulator.hpp"
#include "costmodel/split_schedule.hpp"
#include "runtime/cpu/gemm.hpp"
#include "runtime/cpu_device.hpp"
#include "runtime/emulated.hpp"
#include "runtime/real_time.hpp"
#include "runtime/supported.hpp"
#include "runtime/thread_transport.hpp"
#include "runtime/training_run.hpp"
#include "runtime/transport_mpi.hpp"

namespace runtime {

using costmodel::ConfigError;
using costmodel::Estimate;
using costmodel::Evaluator;
using costmodel::ParallelPlan;
using costmodel::Precision;
using costmodel::Scenario;
using costmodel::Seconds;

namespace {

ParallelPlan plan_of(const Scenario& s) {
  if (!s.plan.automatic.empty()) {
    throw ConfigError(
        s.plan.mark_of(s.plan.automatic.front()),
        fmt::format("plan.{} is auto, and run executes one plan", s.plan.automatic.front()),
        "settle it first: shardplan evaluate SCENARIO --format yaml --out FILE");
  }
  return costmodel::resolve_plan(s);
}

void require_supported(const Scenario& s, const ParallelPlan& plan) {
  const auto faults = unsupported(s.model, s.training, plan);
  if (faults.empty()) return;
  throw ConfigError(s.plan.mark_of(faults.front().key), faults.front().reason,
                    faults.front().remedy);
}

// The CPU computes in fp32, whatever a scenario says of the GPUs it was written for.
void compute_in_fp32(Scenario& s, std::vector<std::string>& notes) {
  auto& t = s.training;
  if (t.precision == Precision::fp32 && t.gradient_precision == Precision::fp32) return;
  notes.push_back("computed in fp32, and predicted so; the scenario says otherwise");
  t.precision = t.gradient_precision = Precision::fp32;
}

std::vector<std::string> notes_on_ranks(const ParallelPlan& plan) {
  std::vector<std::string> notes;
  const auto cores = static_cast<std::int64_t>(std::thread::hardware_concurrency());
  if (cores > 0 && plan.devices() > cores) {
    notes.push_back(fmt::format("{} ranks share {} cores: times are those of taking turns",
                                plan.devices(), cores));
  }
  notes.push_back(fmt::format("matrix products by {}", cpu::gemm_provider()));
  return notes;
}

// One rank's part; what all saw, on rank 0.
std::optional<RunSummary> train_rank(const Evaluator& evaluator, const ParallelPlan& plan,
                                     const RunRequest& request, Transport& transport) {
  if (transport.size() != plan.devices()) {
    throw RunFault(transport.rank(), fmt::format("the plan has {} ranks, and {} were started",
                                                 plan.devices(), transport.size()));
  }
  CpuDevice device;
  TrainingOptions options;
  options.iterations = request.iterations;
  options.executor.seed = request.seed;
  options.executor.memory_limit = request.memory_limit;
  if (transport.rank() == 0) options.progress = request.progress;
  const auto own = train(evaluator, plan, transport, device, options);
  const auto all = gather_measurements(transport, own);
  if (all.empty()) return std::nullopt;
  const auto& t = evaluator.training();
  return summarise(all, plan, t.global_batch * t.sequence);
}

std::optional<RunResult> trained(const RunRequest& request) {
  Scenario s = request.scenario;
  const ParallelPlan plan = plan_of(s);
  require_supported(s, plan);
  RunResult result;
  compute_in_fp32(s, result.notes);
  Evaluator evaluator(s.model, s.cluster, s.training);
  result.predicted = evaluator.estimate(plan);
  std::optional<RunSummary> summary;
  const auto program = [&](Transport& transport) {
    auto own = train_rank(evaluator, plan, request, transport);
    if (own) summary = std::move(own);
  };
  if (request.backend == BackendKind::mpi) {
    run_mpi({.patience = request.patience}, program);
  } else {
    run_ranks(static_cast<int>(plan.devices()), {.patience = request.patience}, program);
  }
  if (!summary) return std::nullopt;
  result.measured = std::move(*summary);
  result.plan = plan;
  result.iterations = request.iterations;
  for (auto& note : notes_on_ranks(plan)) result.notes.push_back(std::move(note));
  return result;
}

costmodel::Schedule schedule_of(const ParallelPlan& plan, const costmodel::PlanCost& cost) {
  const auto m = static_cast<int>(cost.micro_batches);
  if (costmodel::splits_backward(plan.schedule))
    return costmodel::generate(plan.schedule, plan.pp, plan.vpp, m, cost.times, cost.shares);
  return costmodel::generate(plan.schedule, plan.pp, plan.vpp, m);
}

// Pipeline ranks alone: waits of the modelled times, messages between them.
RunSummary emulated(const RunRequest& request, Evaluator& evaluator, const ParallelPlan& plan,
                    const Estimate& predicted) {
  const costmodel::PlanCost cost = evaluator.cost(plan);
  const auto schedule = schedule_of(plan, cost);
  const auto lowered = costmodel::lower(schedule);
  RunSummary summary;
  summary.timeline = request.virtual_clock
                         ? emulate_virtual(lowered, cost.times)
                         : emulate_threads(lowered, cost.times, {.patience = request.patience});
  std::vector<double> scratch;
  const Seconds simulated =
      costmodel::simulate_makespan(costmodel::compile(schedule), cost.times, scratch);
  summary.iteration = measured(summary.timeline).makespan + (predicted.iteration - simulated);
  summarise_stages(plan, cost.micro_batches, summary);
  return summary;
}

RunResult emulate(const RunRequest& request) {
  const Scenario& s = request.scenario;
  RunResult result;
  result.computed = false;
  result.iterations = 1;
  result.plan = plan_of(s);
  Evaluator evaluator(s.model, s.cluster, s.training);
  result.predicted = evaluator.estimate(result.plan);
  result.measured = emulated(request, evaluator, result.plan, result.predicted);
  result.notes.push_back(
      fmt::format("{} pipeline ranks {} the modelled time of each stage; what follows the pipeline "
                  "is taken from the model",
                  result.plan.pp, request.virtual_clock ? "count" : "wait"));
  return result;
}

}  // namespace

std::optional<RunResult> run(const RunRequest& request) {
  auto result = request.backend == BackendKind::emulated
                    ? std::optional<RunResult>(emulate(request))
                    : trained(request);
  if (result) result->backend = backend_names[static_cast<std::size_t>(request.backend)];
  return result;
}

}  // namespace runtime
