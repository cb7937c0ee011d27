#include "runtime/engine/emulated_real_time.hpp"

#include <sched.h>
#include <sys/prctl.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>

#include "costmodel/base/error.hpp"
#include "runtime/backend/tags.hpp"
#include "runtime/ranks/thread_transport.hpp"

namespace runtime {

namespace {

using namespace costmodel;
using Nanoseconds = std::int64_t;

constexpr Nanoseconds billion = 1'000'000'000;

enum Control { ready, begin, finish, result };

Nanoseconds clock_now() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * billion + t.tv_nsec;
}

Nanoseconds nanoseconds(Seconds duration) {
  return static_cast<Nanoseconds>(std::llround(duration.value * 1e9));
}

void sleep_until(Nanoseconds until) {
  const timespec t{until / billion, until % billion};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, nullptr) == EINTR) {
  }
}

// Sleeps, and every millisecond advances pending messages.
void wait_until(Nanoseconds until, Transport& transport) {
  constexpr Nanoseconds step = 1'000'000;
  while (transport.progress() && clock_now() + step < until) sleep_until(clock_now() + step);
  sleep_until(until);
}

// Shortens this thread's timer slack (50 us by default) and, if `urgent`, raises its priority;
// restores both when it ends.
class SharpTimers {
 public:
  explicit SharpTimers(bool urgent) : slack_(prctl(PR_GET_TIMERSLACK)) {
    prctl(PR_SET_TIMERSLACK, 1UL);
    if (!urgent) return;
    policy_ = sched_getscheduler(0);
    sched_getparam(0, &before_);
    const sched_param lowest{sched_get_priority_min(SCHED_FIFO)};
    raised_ = sched_setscheduler(0, SCHED_FIFO, &lowest) == 0;
  }
  ~SharpTimers() {
    prctl(PR_SET_TIMERSLACK, static_cast<unsigned long>(std::max(slack_, 0)));
    if (raised_) sched_setscheduler(0, policy_, &before_);
  }
  SharpTimers(const SharpTimers&) = delete;
  SharpTimers& operator=(const SharpTimers&) = delete;

 private:
  int slack_;
  int policy_ = 0;
  sched_param before_{};
  bool raised_ = false;
};

class RealTimeStages : public EmulatedStages {
 public:
  RealTimeStages(Transport& transport, const Schedule& lowered, const PipelineTimes& times,
                 std::size_t message_bytes, Nanoseconds beginning)
      : EmulatedStages(transport, lowered, times),
        beginning_(beginning),
        transfer_(nanoseconds(times.transfer)),
        message_(message_bytes) {
    SHARDPLAN_CHECK(message_bytes >= sizeof(Nanoseconds));
  }

  Seconds now() const override {
    return Seconds(static_cast<double>(clock_now() - beginning_) * 1e-9);
  }

 protected:
  void work(Seconds duration) override {
    wait_until(clock_now() + nanoseconds(duration), transport_);
  }

  void deliver(int to, int tag) override {
    const Nanoseconds sent = clock_now();
    std::memcpy(message_.data(), &sent, sizeof sent);
    transport_.send(to, tag, message_);
    if (times_.blocking && transfer_ > 0) wait_until(sent + transfer_, transport_);
  }

  void accept(int from, int tag) override {
    transport_.recv(from, tag, message_);
    Nanoseconds sent = 0;
    std::memcpy(&sent, message_.data(), sizeof sent);
    if (clock_now() < sent + transfer_) wait_until(sent + transfer_, transport_);
  }

 private:
  const Nanoseconds beginning_, transfer_;
  std::vector<std::byte> message_;
};

template <class Value>
void put(Transport& transport, int to, Control what, const Value& value) {
  transport.send(to, control_tag(what), std::as_bytes(std::span(&value, 1)));
}

template <class Value>
Value get(Transport& transport, int from, Control what) {
  Value value{};
  transport.recv(from, control_tag(what), std::as_writable_bytes(std::span(&value, 1)));
  return value;
}

// An all-reduce through rank 0: combines the values in the order of the ranks and sends the result
// to all.
template <class Value, class Combine>
Value agree(Transport& transport, Control up, Control down, Value mine, Combine combine) {
  if (transport.rank() != 0) {
    put(transport, 0, up, mine);
    return get<Value>(transport, 0, down);
  }
  for (int rank = 1; rank < transport.size(); ++rank)
    mine = combine(mine, get<Value>(transport, rank, up));
  for (int rank = 1; rank < transport.size(); ++rank) put(transport, rank, down, mine);
  return mine;
}

// After all ranks have arrived: a start time shortly in the future, the same for all.
Nanoseconds agreed_beginning(Transport& transport) {
  constexpr Nanoseconds soon = 30'000'000;
  if (transport.rank() != 0) {
    put(transport, 0, ready, Nanoseconds{0});
    return get<Nanoseconds>(transport, 0, begin);
  }
  for (int rank = 1; rank < transport.size(); ++rank) get<Nanoseconds>(transport, rank, ready);
  const Nanoseconds beginning = clock_now() + soon;
  for (int rank = 1; rank < transport.size(); ++rank) put(transport, rank, begin, beginning);
  return beginning;
}

struct Sums {
  double end, busy;
};

Sums sums_of(std::span<const costmodel::Event> events) {
  Sums sums{0, 0};
  for (const costmodel::Event& event : events) {
    sums.end = std::max(sums.end, event.end.value);
    if (event.stream == costmodel::Stream::compute) sums.busy += (event.end - event.start).value;
  }
  return sums;
}

Measured measured_of(const Sums& sums, int ranks) {
  const double all = sums.end * ranks;
  return {Seconds(sums.end), all > 0 ? 1 - sums.busy / all : 0};
}

}  // namespace

std::vector<costmodel::Event> emulate_rank(Transport& transport, const Schedule& lowered,
                                           const PipelineTimes& times,
                                           const RealTimeOptions& options) {
  require_size(transport, lowered.ranks, "the pipeline");
  const SharpTimers sharp(options.urgent);
  const Nanoseconds beginning = agreed_beginning(transport);
  RealTimeStages stages(transport, lowered, times, options.message_bytes, beginning);
  wait_until(beginning, transport);
  return execute(lowered, transport.rank(), stages);
}

Timeline emulate_threads(const Schedule& lowered, const PipelineTimes& times,
                         const RealTimeOptions& options) {
  std::vector<std::vector<costmodel::Event>> events(static_cast<std::size_t>(lowered.ranks));
  run_ranks(lowered.ranks, {options.patience}, [&](Transport& transport) {
    events[static_cast<std::size_t>(transport.rank())] =
        emulate_rank(transport, lowered, times, options);
  });
  Timeline timeline{lowered.ranks, {}};
  for (const auto& list : events)
    timeline.events.insert(timeline.events.end(), list.begin(), list.end());
  return timeline;
}

Measured measured(const Timeline& timeline) {
  return measured_of(sums_of(timeline.events), timeline.ranks);
}

Measured measured(Transport& transport, std::span<const costmodel::Event> events) {
  const Sums all = agree(transport, finish, result, sums_of(events), [](Sums a, Sums b) {
    return Sums{std::max(a.end, b.end), a.busy + b.busy};
  });
  return measured_of(all, transport.size());
}

Seconds task_overhead(Transport& transport, const RealTimeOptions& options) {
  const int p = transport.size(), m = 2 * p;
  const Seconds task(2e-3);
  const std::vector<Seconds> even(static_cast<std::size_t>(p), task);
  const auto lowered = lower(generate(usual_schedule(1), p, 1, m));
  std::array<double, 5> excess{};
  for (double& of_run : excess) {
    const auto events = emulate_rank(transport, lowered, {even, even, Seconds(0)}, options);
    const double chain =
        2.0 * (m + p - 1);  // tasks one after the other, from the first to the last
    of_run = measured(transport, events).makespan.value / chain - task.value;
  }
  return Seconds(*std::ranges::min_element(excess));
}

Seconds measure_task_overhead(int ranks, const RealTimeOptions& options) {
  Seconds overhead;
  run_ranks(ranks, {options.patience}, [&](Transport& transport) {
    const Seconds of_rank = task_overhead(transport, options);
    if (transport.rank() == 0) overhead = of_rank;
  });
  return overhead;
}

}  // namespace runtime
