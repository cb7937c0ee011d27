#include "runtime/run/emulated_run.hpp"

#include <fmt/format.h>

#include <utility>

#include "costmodel/base/unit_text.hpp"
#include "costmodel/estimate/evaluator.hpp"
#include "costmodel/estimate/iteration_end.hpp"
#include "costmodel/estimate/pipelines_together.hpp"
#include "costmodel/plan/plan_schedule.hpp"
#include "costmodel/plan/plan_text.hpp"
#include "costmodel/schedule/simulator.hpp"
#include "runtime/engine/emulated_real_time.hpp"
#include "runtime/ranks/launch.hpp"
#include "runtime/ranks/mpi_transport.hpp"
#include "runtime/ranks/tcp_transport.hpp"
#include "runtime/run/agreement.hpp"

namespace runtime {

using namespace costmodel;

namespace {

Schedule schedule_of(const ParallelPlan& plan, const PlanCost& cost) {
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
  std::size_t event = 0;  // of the first action's cell
  for (const Action& action : actions) {
    if (!action.beside && !own.actions.empty()) ++event;
    own.actions.push_back({action, events[event].start, events[event].end});
  }
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
  return measured(timeline).makespan - simulate_makespan(compile(schedule), times, scratch);
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
                    format_seconds(overhead)));
  }
  return notes;
}

// The pipelines of a plan, which do not communicate before they have ended: one after the other,
// and then the modelled time of what they do together.
class Emulation {
 public:
  Emulation(const RunRequest& request, Evaluator& evaluator, RunResult& result)
      : request_(request), result_(result), pipelines_(result.plan, evaluator) {}

  // Returns false on a rank that another one answers for.
  bool run() {
    if (pipelines_.size() > 1 && one_of_several() && !request_.virtual_clock)
      throw RunFault(0, "replicas of unequal shares are emulated by one process, on threads");
    for (const PlacedPipeline& one : pipelines_)
      if (!emulate_one(one)) return false;
    result_.measured.timeline.ranks = result_.plan.pp;
    result_.measured.iteration = pipelines_.together(ends_).end.iteration;
    result_.notes = notes_of(request_, result_.plan.pp, overhead_);
    if (pipelines_.size() > 1) {
      result_.notes.emplace_back(
          "groups are emulated one after the other: they only meet at the end");
    }
    return true;
  }

 private:
  std::optional<Emulated> emulated(const ParallelPlan& plan, const Schedule& lowered,
                                   const PipelineTimes& times) {
    if (!request_.virtual_clock) {
      return one_of_several() ? over_processes(request_, plan, lowered, times)
                              : on_threads(request_, lowered, times);
    }
    if (one_of_several() && one_of_several()->rank != 0) return {};
    return Emulated{emulate_virtual(lowered, times), Seconds(0)};
  }

  bool emulate_one(const PlacedPipeline& one) {
    const ParallelPlan& plan = one.pipeline.plan;
    ends_.push_back(one.evaluator->end_of(plan));
    const auto cost = one.evaluator->cost(plan);
    const Schedule schedule = schedule_of(plan, cost), lowered = lower(schedule);
    std::optional<Emulated> seen = emulated(plan, lowered, cost.times);
    if (!seen) return false;
    ends_.back().meeting += later(seen->timeline, schedule, cost.times);
    overhead_ = max(overhead_, seen->overhead);
    RunSummary own;
    own.timeline = std::move(seen->timeline);
    summarise_stages(plan, cost.micro_batches,
                     ends_apart(plan.schedule, request_.scenario.training.stack.collectives), own);
    add(own, one.pipeline.first_stage, ends_.back().meeting);
    return true;
  }

  // The reported bubble is that of the pipeline that finishes last.
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
  const PlacedPipelines pipelines_;
  std::vector<costmodel::Ending> ends_;
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
  Evaluator evaluator(s.model, s.cluster, s.training);
  result.predicted = evaluator.estimate(result.plan);
  if (!Emulation(request, evaluator, result).run()) return std::nullopt;
  return result;
}

}  // namespace runtime
