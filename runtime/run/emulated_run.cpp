#include "runtime/run/emulated_run.hpp"

#include <fmt/format.h>

#include <utility>

#include "costmodel/base/unit_text.hpp"
#include "costmodel/estimate/iteration_end.hpp"
#include "costmodel/estimate/replica_cost.hpp"
#include "costmodel/plan/plan_schedule.hpp"
#include "costmodel/plan/plan_text.hpp"
#include "costmodel/plan/replica_groups.hpp"
#include "costmodel/schedule/simulator.hpp"
#include "runtime/engine/emulated_real_time.hpp"
#include "runtime/ranks/launch.hpp"
#include "runtime/ranks/mpi_transport.hpp"
#include "runtime/ranks/tcp_transport.hpp"
#include "runtime/run/agreement.hpp"

namespace runtime {

using costmodel::ParallelPlan;
using costmodel::PipelineTimes;
using costmodel::Schedule;
using costmodel::Seconds;
using costmodel::Timeline;

namespace {

Schedule schedule_of(const ParallelPlan& plan, const costmodel::PlanCost& cost) {
  return costmodel::schedule_of(plan, cost.micro_batches, cost.times, cost.shares);
}

// The ranks' timeline, and the measured overhead per action (0: not measured).
struct Emulated {
  Timeline timeline;
  Seconds overhead;
};

// With more ranks than this, too few cores are shared to measure the wake-up overhead.
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

// Each rank's events, from the times of its actions.
RankMeasurement noted(int rank, const Schedule& lowered,
                      const std::vector<costmodel::Event>& events) {
  RankMeasurement own;
  own.pipeline_rank = rank;
  const auto& actions = lowered.actions[static_cast<std::size_t>(rank)];
  for (std::size_t i = 0; i < actions.size(); ++i)
    own.actions.push_back({actions[i], events[i].start, events[i].end});
  return own;
}

// One process per pipeline rank; rank 0 gets all measurements.
std::optional<Emulated> over_processes(const RunRequest& request, const ParallelPlan& plan,
                                       const Schedule& lowered, const PipelineTimes& times) {
  std::optional<Emulated> emulated;
  const auto program = [&](Transport& transport) {
    require_agreement(transport, statements(request, plan), lowered.ranks,
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

// How much later one pipeline ended than in the simulator.
Seconds later(const Timeline& timeline, const Schedule& schedule, const PipelineTimes& times) {
  std::vector<double> scratch;
  return measured(timeline).makespan -
         costmodel::simulate_makespan(costmodel::compile(schedule), times, scratch);
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

// Groups of replicas, which do not communicate before their pipelines have ended: one after the
// other, and then the modelled time of the sum over them.
class GroupEmulation {
 public:
  GroupEmulation(const RunRequest& request, RunResult& result)
      : request_(request),
        result_(result),
        groups_(request.scenario.model, request.scenario.cluster, request.scenario.training) {}

  void run() {
    const auto parts = replica_parts(result_.plan, request_.scenario.training.global_batch);
    for (std::size_t g = 0; g < parts.size(); ++g) emulate_group(g, parts[g]);
    result_.measured.timeline.ranks = result_.plan.pp;
    result_.measured.iteration = groups_.iteration(ends_);
    result_.notes = notes_of(request_, result_.plan.pp, overhead_);
    result_.notes.emplace_back(
        "groups are emulated one after the other: they only meet at the end");
  }

 private:
  void emulate_group(std::size_t g, const costmodel::ReplicaPart& part) {
    const costmodel::ReplicaShare share{part.plan, part.micro_batches};
    ends_.push_back(groups_.end(g, share));
    const auto cost = groups_.cost(g, share);
    const Schedule schedule = schedule_of(part.plan, cost), lowered = costmodel::lower(schedule);
    Emulated emulated = request_.virtual_clock
                            ? Emulated{emulate_virtual(lowered, cost.times), Seconds(0)}
                            : on_threads(request_, lowered, cost.times);
    ends_.back().meeting += later(emulated.timeline, schedule, cost.times);
    overhead_ = max(overhead_, emulated.overhead);
    RunSummary own;
    own.timeline = std::move(emulated.timeline);
    summarise_stages(part.plan, part.micro_batches,
                     ends_apart(part.plan.schedule, request_.scenario.training.stack), own);
    add(own, part.first_stage, ends_.back().meeting);
  }

  // The reported bubble is that of the group that finishes last.
  void add(const RunSummary& own, int first_stage, Seconds meeting) {
    RunSummary& all = result_.measured;
    if (meeting > last_meeting_) {
      last_meeting_ = meeting;
      all.bubble_fraction = own.bubble_fraction;
    }
    for (auto [to, from] : {std::pair{&all.stage_forward, &own.stage_forward},
                            std::pair{&all.stage_backward, &own.stage_backward}})
      to->insert(to->end(), from->begin(), from->end());
    for (costmodel::Event event : own.timeline.events) {
      event.rank += first_stage;
      all.timeline.events.push_back(std::move(event));
    }
  }

  const RunRequest& request_;
  RunResult& result_;
  costmodel::ReplicaEvaluator groups_;
  std::vector<costmodel::ReplicaEnd> ends_;
  Seconds overhead_, last_meeting_;
};

}  // namespace

std::optional<RunResult> emulate(const RunRequest& request) {
  RunResult result;
  result.backend = request.backend->name;
  result.computed = false;
  result.iterations = 1;
  result.plan = executed_plan(request.scenario);
  const auto& s = result.scenario = request.scenario;
  costmodel::Evaluator evaluator(s.model, s.cluster, s.training);
  result.predicted = evaluator.estimate(result.plan);
  if (!result.plan.replica_groups.empty()) {
    if (one_of_several() && !request.virtual_clock)
      throw RunFault(0, "replicas of unequal shares are emulated by one process, on threads");
    if (one_of_several() && one_of_several()->rank != 0) return std::nullopt;
    GroupEmulation(request, result).run();
    return result;
  }
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
  result.measured.iteration =
      result.predicted.iteration + later(result.measured.timeline, schedule, cost.times);
  summarise_stages(result.plan, cost.micro_batches,
                   ends_apart(result.plan.schedule, s.training.stack), result.measured);
  result.notes = notes_of(request, result.plan.pp, emulated->overhead);
  return result;
}

}  // namespace runtime
