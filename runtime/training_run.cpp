#include "runtime/training_run.hpp"

#include <numeric>

#include "runtime/tags.hpp"

namespace runtime {

using costmodel::Action;
using costmodel::ActionKind;
using costmodel::Seconds;

costmodel::Schedule lowered_schedule(const costmodel::ParallelPlan& plan,
                                     std::int64_t micro_batches) {
  return costmodel::lower(
      costmodel::generate(plan.schedule, plan.pp, plan.vpp, static_cast<int>(micro_batches)));
}

namespace {

// Ranks begin an iteration together, so that their clocks show the same moment.
class StartLine {
 public:
  explicit StartLine(Transport& transport)
      : all_(everybody(transport)), communicator_(transport, all_, uncounted_) {}
  void meet() { communicator_.barrier(control_tag(0)); }

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

void add_mean(std::vector<Seconds>& means, const Action& action, Seconds time, double share) {
  means[static_cast<std::size_t>(action.stage)] += time * share;
}

// Each rank's events stand in the order of its actions.
void note_actions(const std::vector<costmodel::Event>& events, const std::vector<Action>& actions,
                  double share, RankMeasurement& own) {
  own.actions.clear();
  for (std::size_t i = 0; i < actions.size(); ++i) {
    own.actions.push_back({actions[i], events[i].start, events[i].end});
    if (share == 0) continue;
    const Seconds time = events[i].end - events[i].start;
    if (actions[i].kind == ActionKind::forward) add_mean(own.forward, actions[i], time, share);
    if (actions[i].kind == ActionKind::backward) add_mean(own.backward, actions[i], time, share);
  }
}

void note_counts(const StageExecutor& executor, RankMeasurement& own) {
  own.traffic = executor.traffic();
  for (std::size_t k = 0; k < own.peaks.size(); ++k)
    own.peaks[k] = static_cast<std::int64_t>(executor.arena().peak(static_cast<MemoryKind>(k)));
  own.peak = static_cast<std::int64_t>(executor.arena().peak());
}

}  // namespace

RankMeasurement train(const costmodel::Evaluator& evaluator, const costmodel::ParallelPlan& plan,
                      Transport& transport, Device& device, const TrainingOptions& options) {
  StageExecutor executor(evaluator, plan, transport, device, options.executor);
  StartLine start(transport);
  const std::int64_t m = plan.micro_batches(evaluator.training().global_batch);
  const auto schedule = lowered_schedule(plan, m);
  RankMeasurement own;
  own.pipeline_rank = executor.coordinates().pp;
  const auto& actions = schedule.actions[static_cast<std::size_t>(own.pipeline_rank)];
  own.forward.resize(static_cast<std::size_t>(plan.virtual_stages()));
  own.backward.resize(own.forward.size());
  // The first iteration warms up, unless it is the only one.
  const int measured = std::max(1, options.iterations - 1);
  for (int i = 0; i < options.iterations; ++i) {
    const bool counts = i > 0 || options.iterations == 1;
    start.meet();
    executor.restart_counts();
    executor.begin_iteration(i);
    const auto events = execute(schedule, own.pipeline_rank, executor);
    own.pipeline_end = executor.now();
    own.reductions = executor.reduce_gradients();
    own.reduced = executor.now();
    executor.step();
    own.end = executor.now();
    own.iterations.push_back(own.end);
    own.loss_sums.push_back(executor.loss_sum());
    note_actions(events, actions, counts ? 1.0 / (static_cast<double>(m) * measured) : 0, own);
    note_counts(executor, own);
    if (options.progress) options.progress(i, own.end);
  }
  return own;
}

}  // namespace runtime
