#include "runtime/training/training_run.hpp"

#include <fmt/format.h>

#include <new>
#include <numeric>
#include <string>

#include "costmodel/estimate/evaluator.hpp"
#include "costmodel/plan/mesh.hpp"
#include "costmodel/plan/pipeline.hpp"
#include "costmodel/plan/plan_schedule.hpp"
#include "runtime/backend/tags.hpp"
#include "runtime/ranks/part_transport.hpp"
#include "runtime/training/replica_gradient_sum.hpp"
#include "runtime/training/run_progress.hpp"

namespace runtime {

using namespace costmodel;

Schedule lowered_schedule(const ParallelPlan& plan, std::int64_t micro_batches) {
  return lower(costmodel::schedule_of(plan, micro_batches, PipelineTimes{}, {}));
}

Schedule lowered_schedule(const Evaluator& evaluator, const ParallelPlan& plan,
                          std::int64_t micro_batches) {
  if (!splits_backward(plan.schedule) || plan.listed != nullptr)
    return lowered_schedule(plan, micro_batches);
  Evaluator own = evaluator;
  const PlanCost& cost = own.cost(plan);
  Schedule schedule = schedule_of(plan, micro_batches, cost.times, cost.shares);
  for (Actions& list : schedule.actions)  // a rank computes one action at a time
    for (Action& action : list) action.beside = false;
  return lower(schedule);
}

namespace {

// Starts an iteration on all ranks together, so that their clocks agree.
class StartLine {
 public:
  explicit StartLine(Transport& transport)
      : all_(everybody(transport)), communicator_(transport, all_, uncounted_) {}
  void meet() { communicator_.barrier(control_tag(0)); }
  bool any(bool here) {
    float found = here ? 1 : 0;
    communicator_.tree_all_reduce({&found, 1}, Reduction::max, control_tag(0));
    return found != 0;
  }

 private:
  static Group everybody(const Transport& transport) {
    std::vector<int> ranks(static_cast<std::size_t>(transport.size()));
    std::iota(ranks.begin(), ranks.end(), 0);
    return group_of(transport, ranks);
  }
  Group all_;
  TrafficCount uncounted_;
  Communicator communicator_;
};

// What a rank is doing, for the error message.
struct Doing {
  int rank = 0, pipeline_rank = 0;
  int iteration = 0;  // from 1; 0: before the first
  std::string what = "making its weights and states";

  std::string text() const {
    const std::string who = fmt::format("rank {}, pipeline rank {}, ", rank, pipeline_rank);
    return iteration == 0 ? who + what : fmt::format("{}iteration {}, {}", who, iteration, what);
  }
};

// Each rank's events are in the order of its actions, one for those of a cell, which are a backward
// and its weight gradient: its time is the first one's. Stage times are means over micro-batches.
void note_actions(const std::vector<costmodel::Event>& events, const std::vector<Action>& actions,
                  const Pipeline& own, RankMeasurement& one) {
  std::size_t at = 0;
  for (const costmodel::Event& event : events) {
    const auto cell = cell_at(actions, at);
    at += cell.size();
    for (const Action& action : cell) one.actions.push_back({action, event.start, event.end});
    const Seconds share = (event.end - event.start) / static_cast<double>(own.micro_batches);
    const Action& first = cell.front();
    const auto stage =
        static_cast<std::size_t>(own.first_stage) + static_cast<std::size_t>(first.stage);
    if (first.kind == ActionKind::forward) one.forward[stage] += share;
    if (first.kind == ActionKind::backward || first.kind == ActionKind::weight_gradient)
      one.backward[stage] += share;
  }
}

void note_counts(const StageExecutor& executor, RankMeasurement& one) {
  one.traffic = executor.traffic();
  for (std::size_t k = 0; k < one.peaks.size(); ++k)
    one.peaks[k] = static_cast<std::int64_t>(executor.arena().peak(static_cast<MemoryKind>(k)));
  one.peak = static_cast<std::int64_t>(executor.arena().peak());
}

// The number of ranks of a pipeline and its replicas.
int ranks_of(const Pipeline& one) { return static_cast<int>(one.plan.devices()); }

class Trainer {
 public:
  Trainer(const Evaluator& evaluator, const ParallelPlan& plan, Transport& transport,
          Device& device, const ExecutorOptions& options, Doing& doing)
      : plan_(plan),
        pipelines_(pipelines_of(plan, evaluator.training().global_batch)),
        own_(pipeline_of_rank(pipelines_, transport.rank())),
        schedule_(lowered_schedule(evaluator, own_.plan, own_.micro_batches)),
        doing_(doing),
        own_ranks_(transport, static_cast<int>(own_.first_rank), ranks_of(own_)),
        across_(pipelines_, evaluator.model(), transport, device.memory()),
        executor_(evaluator, own_.plan, several() ? own_ranks_ : transport, device,
                  with_pipeline(options)),
        start_(transport) {}

  RankMeasurement iterate(int number) {
    doing_.iteration = number + 1;
    doing_.what = "waiting for all to begin";
    RankMeasurement one;
    const auto rank = static_cast<std::size_t>(executor_.coordinates().pp);
    one.pipeline_rank = own_.first_stage + executor_.coordinates().pp;
    one.forward.resize(static_cast<std::size_t>(plan_.virtual_stages()));
    one.backward.resize(one.forward.size());
    start_.meet();
    executor_.restart_counts();
    executor_.begin_iteration(number);
    executor_.announce(schedule_.actions[rank]);
    const auto events = execute(schedule_, executor_.coordinates().pp, executor_,
                                [&](const Action& action) { doing_.what = to_text(action); });
    one.pipeline_end = executor_.now();
    finish(one);
    note_actions(events, schedule_.actions[rank], own_, one);
    note_counts(executor_, one);
    doing_.what = "telling rank 0 how it went";
    return one;
  }

 private:
  bool several() const { return pipelines_.size() > 1; }

  ExecutorOptions with_pipeline(ExecutorOptions options) {
    options.pipeline = &own_;
    options.across = several() ? &across_ : nullptr;
    return options;
  }

  void finish(RankMeasurement& one) {
    doing_.what = "reducing gradients";
    one.reductions = executor_.reduce_gradients();
    one.reduced = executor_.now();
    doing_.what = "the optimizer's step";
    const LossScale* const scale = executor_.loss_scale();
    executor_.step(scale != nullptr && start_.any(executor_.overflowed()));
    if (scale != nullptr) {
      one.loss_scale = scale->value();
      one.skipped = scale->skipped();
    }
    one.end = executor_.now();
    one.iterations = {one.end};
    one.loss_sums = {executor_.loss_sum()};
  }

  const ParallelPlan& plan_;
  const std::vector<Pipeline> pipelines_;
  const Pipeline& own_;  // the rank's
  const Schedule schedule_;
  Doing& doing_;
  PartTransport own_ranks_;
  GroupSum across_;
  StageExecutor executor_;
  StartLine start_;
};

int pipeline_rank(const ParallelPlan& plan, int rank) {
  const auto all = pipelines_of(plan, 0);
  const auto& own = pipeline_of_rank(all, rank);
  return own.first_stage + Mesh(own.plan).coordinates(rank - own.first_rank).pp;
}

}  // namespace

RankMeasurement train(const Evaluator& evaluator, const ParallelPlan& plan, Transport& transport,
                      Device& device, const TrainingOptions& options) {
  const int rank = transport.rank();
  Doing doing{.rank = rank, .pipeline_rank = pipeline_rank(plan, rank)};
  try {
    Trainer trainer(evaluator, plan, transport, device, options.executor, doing);
    RunProgress own;
    for (int i = 0; i < options.iterations; ++i) {
      RankMeasurement one = trainer.iterate(options.first + i);
      if (options.pace) one.pace = options.pace();
      own.add({one});
      if (options.each) options.each(one);
      if (options.progress) options.progress(i, one.end);
    }
    return own.so_far().front();
  } catch (const RunFault& fault) {
    throw RunFault(fault.rank(), fmt::format("{} ({})", fault.what(), doing.text()));
  } catch (const std::bad_alloc&) {
    throw RunFault(rank, doing.text() + ": the machine's memory ran out");
  } catch (const std::exception& fault) {
    throw RunFault(rank, fmt::format("{}: {}", doing.text(), fault.what()));
  }
}

}  // namespace runtime
