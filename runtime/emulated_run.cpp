#include "runtime/emulated_run.hpp"

#include <fmt/format.h>

#include <utility>

#include "costmodel/simulator.hpp"
#include "costmodel/split_schedule.hpp"
#include "costmodel/units_text.hpp"
#include "runtime/agreement.hpp"
#include "runtime/launch.hpp"
#include "runtime/real_time.hpp"
#include "runtime/transport_mpi.hpp"
#include "runtime/transport_tcp.hpp"

namespace runtime {

using costmodel::ParallelPlan;
using costmodel::PipelineTimes;
using costmodel::Schedule;
using costmodel::Seconds;
using costmodel::Timeline;

namespace {

Schedule schedule_of(const ParallelPlan& plan, const costmodel::PlanCost& cost) {
  const auto m = static_cast<int>(cost.micro_batches);
  if (costmodel::splits_backward(plan.schedule))
    return costmodel::generate(plan.schedule, plan.pp, plan.vpp, m, cost.times, cost.shares);
  return costmodel::generate(plan.schedule, plan.pp, plan.vpp, m);
}

// What the ranks did, and what each action takes longer than the model says (0: not measured).
struct Emulated {
  Timeline timeline;
  Seconds overhead;
};

// More ranks share too few cores for a measurement of what one wakes up late.
constexpr int most_measured = 32;

RealTimeOptions options_of(const RunRequest& request) {
  return {.urgent = true, .patience = request.patience};
}

Emulated on_threads(const RunRequest& request, const Schedule& lowered,
                    const PipelineTimes& times) {
  const RealTimeOptions options = options_of(request);
  Emulated emulated;
  if (lowered.ranks <= most_measured)
    emulated.overhead = measure_task_overhead(lowered.ranks, options);
  emulated.timeline = emulate_threads(lowered, times, options);
  return emulated;
}

// Each rank's events, by its actions' times.
RankMeasurement noted(int rank, const Schedule& lowered,
                      const std::vector<costmodel::Event>& events) {
  RankMeasurement own;
  own.pipeline_rank = rank;
  const auto& actions = lowered.actions[static_cast<std::size_t>(rank)];
  for (std::size_t i = 0; i < actions.size(); ++i)
    own.actions.push_back({actions[i], events[i].start, events[i].end});
  return own;
}

// Each process a pipeline rank; what all saw is rank 0's.
std::optional<Emulated> over_processes(const RunRequest& request, const ParallelPlan& plan,
                                       const Schedule& lowered, const PipelineTimes& times) {
  std::optional<Emulated> emulated;
  const auto program = [&](Transport& transport) {
    require_agreement(transport, statements(request.scenario, plan, request.seed, 1), lowered.ranks,
                      to_string(plan) + ", emulated by pipeline rank,");
    const RealTimeOptions options = options_of(request);
    const Seconds overhead =
        lowered.ranks <= most_measured ? task_overhead(transport, options) : Seconds(0);
    const auto events = emulate_rank(transport, lowered, times, options);
    const auto all = gather_measurements(transport, noted(transport.rank(), lowered, events));
    if (!all.empty()) emulated = {timeline_of(all, lowered.ranks), overhead};
  };
  if (!launched()) {
    run_tcp({.patience = request.patience}, program);
    return emulated;
  }
  if (const auto missing = mpi_missing(); !missing.empty()) throw RunFault(0, missing);
  if (run_mpi({.patience = request.patience}, program) != 0) throw RunFault(0, "MPI did not start");
  return emulated;
}

std::vector<std::string> notes_of(const RunRequest& request, int ranks, Seconds overhead) {
  std::vector<std::string> notes{
      fmt::format("{} pipeline ranks {} the modelled time of each stage; what follows the pipeline "
                  "is taken from the model",
                  ranks, request.virtual_clock ? "count" : "wait")};
  if (overhead > Seconds(0)) {
    notes.push_back(
        fmt::format("an action takes {} longer here than it should, which the "
                    "prediction does not count",
                    costmodel::format_seconds(overhead)));
  }
  return notes;
}

}  // namespace

std::optional<RunResult> emulate(const RunRequest& request) {
  RunResult result;
  result.backend = backend_names[static_cast<std::size_t>(request.backend)];
  result.computed = false;
  result.iterations = 1;
  result.plan = executed_plan(request.scenario);
  const auto& s = request.scenario;
  costmodel::Evaluator evaluator(s.model, s.cluster, s.training);
  result.predicted = evaluator.estimate(result.plan);
  const auto cost = evaluator.cost(result.plan);
  const auto schedule = schedule_of(result.plan, cost);
  const auto lowered = costmodel::lower(schedule);
  std::optional<Emulated> emulated;
  if (!request.virtual_clock) {
    emulated = one_of_several() ? over_processes(request, result.plan, lowered, cost.times)
                                : on_threads(request, lowered, cost.times);
  } else if (!one_of_several() || one_of_several()->rank == 0) {
    emulated = {emulate_virtual(lowered, cost.times), Seconds(0)};
  }
  if (!emulated) return std::nullopt;
  result.measured.timeline = std::move(emulated->timeline);
  std::vector<double> scratch;
  const Seconds simulated =
      costmodel::simulate_makespan(costmodel::compile(schedule), cost.times, scratch);
  const Seconds longer = measured(result.measured.timeline).makespan - simulated;
  result.measured.iteration = result.predicted.iteration + longer;
  summarise_stages(result.plan, cost.micro_batches, result.measured);
  result.notes = notes_of(request, result.plan.pp, emulated->overhead);
  return result;
}

}  // namespace runtime
