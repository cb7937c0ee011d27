#include "calibrate/stage_probe.hpp"

#include <algorithm>
#include <utility>

#include "costmodel/error.hpp"
#include "runtime/cpu_device.hpp"
#include "runtime/stage_executor.hpp"
#include "runtime/supported.hpp"
#include "runtime/thread_transport.hpp"

namespace calibrate {

namespace {

// Micro-batches between two steps of the optimizer, which leaves the caches full of its states.
constexpr int micro_batches = 2;

struct Samples {
  std::vector<double> forward, backward, optimizer;
};

class Probe {
 public:
  Probe(const costmodel::Evaluator& evaluator, const costmodel::ParallelPlan& plan, Pace pace)
      : world_(1, {}),
        clock_(thread_clock()),
        around_(pace),
        recorder_(device_, clock_, std::move(pace)),
        executor_(evaluator, plan, world_.of(0), recorder_, {}) {}

  void iterate() {
    executor_.begin_iteration(number_++);
    for (int i = 0; i < micro_batches; ++i) {
      timed(samples.forward, [&] { executor_.forward(0, i); });
      timed(samples.backward, [&] { executor_.backward(0, i); });
    }
    executor_.reduce_gradients();
    timed(samples.optimizer, [&] { executor_.step(); });
  }

  void forget() {
    samples = {};
    recorder_.forget();
  }

  std::vector<OpRecorder::Entry> entries() const { return recorder_.entries(); }

  Samples samples;

 private:
  template <class Work>
  void timed(std::vector<double>& times, const Work& work) {
    around_.begin();
    recorder_.begin();
    const costmodel::Seconds begin = clock_();
    work();
    const costmodel::Seconds time = clock_() - begin;
    times.push_back(time.value * around_.factor());
  }

  runtime::ThreadWorld world_;
  Clock clock_;
  PaceAround around_;
  runtime::CpuDevice device_;
  OpRecorder recorder_;
  runtime::StageExecutor executor_;
  std::int64_t number_ = 0;
};

}  // namespace

StageTimes time_stage(const costmodel::Evaluator& evaluator, const costmodel::ParallelPlan& plan,
                      const StopRule& rule) {
  SHARDPLAN_CHECK(plan.devices() == 1);
  const auto faults = runtime::unsupported(evaluator.model(), evaluator.training(), plan);
  if (!faults.empty())
    throw costmodel::ConfigError({}, faults.front().reason, faults.front().remedy);
  Probe probe(evaluator, plan, yardstick());
  for (int i = 0; i < rule.warm_up; ++i) probe.iterate();
  probe.forget();
  StopRule warm = rule;
  warm.warm_up = 0;
  repeat([&] { probe.iterate(); }, warm, thread_clock(),
         [&] {
           return std::max(summarised(probe.samples.forward).relative_error,
                           summarised(probe.samples.backward).relative_error);
         });
  return {summarised(probe.samples.forward), summarised(probe.samples.backward),
          summarised(probe.samples.optimizer), probe.entries()};
}

PassTimes by_ops(const StageTimes& times) {
  PassTimes sum;
  for (const auto& entry : times.ops) {
    const double calls = static_cast<double>(entry.times.size()) / times.forward.repeats;
    const bool forward = entry.pass == costmodel::Pass::forward;
    (forward ? sum.forward : sum.backward) += calls * summarised(entry.times).median;
  }
  return sum;
}

Timing time_together(const SmallModel& model, int ranks, bool best_pace, const StopRule& rule) {
  const auto evaluator = evaluator_of(model, {});
  std::vector<PassTimes> all(static_cast<std::size_t>(ranks));
  const Clock wall = wall_clock();
  const costmodel::Seconds end = wall() + rule.longest;
  runtime::run_ranks(ranks, {}, [&](runtime::Transport& transport) {
    Probe probe(evaluator, plan_of(model), best_pace ? yardstick() : Pace());
    probe.iterate();
    probe.forget();
    while (probe.samples.forward.size() < 2 || wall() < end) probe.iterate();
    all[static_cast<std::size_t>(transport.rank())] =
        by_ops({summarised(probe.samples.forward), {}, {}, probe.entries()});
  });
  Timing timing;
  timing.repeats = ranks;
  for (const PassTimes& one : all) timing.median += (one.forward + one.backward) / ranks;
  timing.least = timing.median;
  return timing;
}

}  // namespace calibrate
