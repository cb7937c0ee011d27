#include "calibrate/measure/stage_probe.hpp"

#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>
#include <span>
#include <utility>

#include "costmodel/base/error.hpp"
#include "costmodel/estimate/evaluator.hpp"
#include "runtime/devices/cpu_device.hpp"
#include "runtime/devices/paced_device.hpp"
#include "runtime/ranks/thread_transport.hpp"
#include "runtime/run/supported.hpp"
#include "runtime/training/stage_executor.hpp"

namespace calibrate {

using namespace costmodel;

namespace {

// Micro-batches between two steps of the optimizer, which leaves the caches full of its states.
constexpr int micro_batches = 2;

struct Samples {
  std::vector<double> forward, backward, optimizer;
};

// Rank 0 of several of which there are no others: what it sends is lost, what it receives are small
// numbers. Time until then belongs to no operator.
class FirstAlone : public runtime::Transport {
 public:
  FirstAlone(int size, std::function<void()> received)
      : size_(size), received_(std::move(received)) {}
  int rank() const override { return 0; }
  int size() const override { return size_; }
  void send(int, int, std::span<const std::byte>) override {}
  void recv(int, int, std::span<std::byte> message) override {
    for (std::size_t i = 0; i + sizeof(float) <= message.size(); i += sizeof(float)) {
      const float value = 0.01F * (static_cast<float>(i / sizeof(float) % 13) - 6);
      std::memcpy(&message[i], &value, sizeof value);
    }
    received_();
  }

 private:
  int size_;
  std::function<void()> received_;
};

class Probe {
 public:
  Probe(const Evaluator& evaluator, const ParallelPlan& plan, runtime::Device& device, Clock clock,
        const Pace& pace)
      : world_(static_cast<int>(plan.devices()), [this] { recorder_.begin(); }),
        clock_(std::move(clock)),
        around_(pace),
        recorder_(device, clock_, pace),
        executor_(evaluator, plan, world_, recorder_, {}) {}

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
    const Seconds begin = clock_();
    work();
    const Seconds time = clock_() - begin;
    times.push_back(time.value / around_.slowdown());
  }

  FirstAlone world_;
  Clock clock_;
  PaceAround around_;
  OpRecorder recorder_;
  runtime::StageExecutor executor_;
  std::int64_t number_ = 0;
};

}  // namespace

StageTimes time_stage(const Evaluator& evaluator, const ParallelPlan& plan, const StopRule& rule) {
  SHARDPLAN_CHECK(plan.devices() == plan.tp);
  const auto faults = runtime::unsupported(evaluator.model(), evaluator.training(), plan);
  if (!faults.empty()) throw ConfigError({}, faults.front().reason, faults.front().remedy);
  runtime::CpuDevice device;
  Probe probe(evaluator, plan, device, thread_clock(), yardstick());
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
    const bool forward = entry.pass == Pass::forward;
    (forward ? sum.forward : sum.backward) += calls * entry.timing().median;
  }
  return sum;
}

namespace {

double sum_of(const std::vector<double>& times) {
  return std::accumulate(times.begin(), times.end(), 0.0);
}

// One of several ranks, until the time is over.
Together one_together(const SmallModel& model, const StopRule& rule) {
  const auto evaluator = evaluator_of(model, {});
  runtime::CpuDevice cpu;
  runtime::PacedDevice device(cpu);
  const Clock wall = wall_clock();
  Probe probe(evaluator, plan_of(model), device, wall, {});
  probe.iterate();
  probe.forget();
  device.slowdown(pace_reference());
  const Seconds measuring = device.measuring(), end = wall() + rule.longest;
  while (probe.samples.forward.size() < 2 || wall() < end) probe.iterate();
  const double seconds = sum_of(probe.samples.forward) + sum_of(probe.samples.backward) -
                         (device.measuring() - measuring).value;
  return {Seconds(seconds / static_cast<double>(probe.samples.forward.size())),
          device.slowdown(pace_reference())};
}

}  // namespace

Together time_together(const SmallModel& model, int ranks, const StopRule& rule) {
  std::vector<Together> all(static_cast<std::size_t>(ranks));
  pace_reference();  // before the ranks disturb each other
  runtime::run_ranks(ranks, {}, [&](runtime::Transport& transport) {
    all[static_cast<std::size_t>(transport.rank())] = one_together(model, rule);
  });
  Together mean;
  for (const Together& one : all) {
    mean.passes += one.passes / ranks;
    mean.pace += one.pace / ranks;
  }
  return mean;
}

}  // namespace calibrate
