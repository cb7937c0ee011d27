#include "calibrate/network_bench.hpp"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <numeric>
#include <vector>

#include "costmodel/error.hpp"
#include "runtime/collectives.hpp"
#include "runtime/tags.hpp"
#include "runtime/thread_transport.hpp"

namespace calibrate {

using costmodel::CollectiveKind;
using costmodel::Seconds;

namespace {

using Floats = std::vector<float>;

std::size_t floats_in(std::int64_t bytes) {
  return std::max<std::size_t>(1, static_cast<std::size_t>(bytes) / sizeof(float));
}

// Keeps the compiler from leaving out what nobody reads.
void read_once(const Floats& values) { asm volatile("" : : "r"(values.data()) : "memory"); }

class Rank {
 public:
  Rank(runtime::Transport& transport, std::int64_t bytes)
      : transport_(transport),
        communicator_(transport, everybody(transport), traffic_),
        values_(floats_in(bytes), 1e-3F) {}

  void meet() { communicator_.barrier(runtime::control_tag(1)); }

  void run(CollectiveKind kind) {
    const int tag = runtime::collective_tag(1);
    switch (kind) {
      case CollectiveKind::all_reduce:
        return communicator_.all_reduce(values_, runtime::Reduction::sum, tag);
      case CollectiveKind::all_gather: return communicator_.all_gather(values_, tag);
      case CollectiveKind::reduce_scatter:
        return communicator_.reduce_scatter(values_, runtime::Reduction::sum, tag);
      case CollectiveKind::send: return pass_on();
      default: SHARDPLAN_CHECK(!"a collective that is not measured");
    }
  }

  // Sums would grow without end.
  void settle() { std::fill(values_.begin(), values_.end(), 1e-3F); }

 private:
  static runtime::Group everybody(const runtime::Transport& transport) {
    std::vector<int> ranks(static_cast<std::size_t>(transport.size()));
    std::iota(ranks.begin(), ranks.end(), 0);
    return group_of(transport, ranks);
  }

  void pass_on() {
    const int tag = runtime::forward_tag(0, 0);
    if (transport_.rank() == 0) transport_.send(1, tag, std::as_bytes(std::span(values_)));
    if (transport_.rank() == 1) transport_.recv(0, tag, std::as_writable_bytes(std::span(values_)));
  }

  runtime::Transport& transport_;
  runtime::TrafficCount traffic_;
  runtime::Communicator communicator_;
  Floats values_;
};

// Whether there is another repetition, which rank 0 decides.
class Turn {
 public:
  void set(bool more) {
    const std::scoped_lock lock(mutex_);
    more_ = more;
  }
  bool more() const {
    const std::scoped_lock lock(mutex_);
    return more_;
  }

 private:
  mutable std::mutex mutex_;
  bool more_ = true;
};

}  // namespace

Timing time_copy(std::int64_t bytes, const StopRule& rule) {
  Floats from(floats_in(bytes), 1), to(from.size());
  const auto copy = [&] {
    std::memcpy(to.data(), from.data(), from.size() * sizeof(float));
    read_once(to);
  };
  return measure(copy, rule, thread_clock(), yardstick());
}

Timing time_triad(std::int64_t bytes, const StopRule& rule) {
  Floats a(floats_in(bytes)), b(a.size(), 1), c(a.size(), 2);
  const auto triad = [&] {
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = b[i] + 0.5F * c[i];
    read_once(a);
  };
  return measure(triad, rule, thread_clock(), yardstick());
}

Timing time_collective(CollectiveKind kind, std::int64_t bytes, int ranks, const StopRule& rule) {
  std::vector<double> times;
  std::vector<double> ends(static_cast<std::size_t>(ranks));
  Turn turn;
  const Clock clock = wall_clock();
  runtime::run_ranks(ranks, {}, [&](runtime::Transport& transport) {
    Rank rank(transport, bytes);
    const bool first = transport.rank() == 0;
    const Seconds opening = clock();
    for (int i = 0;; ++i) {
      rank.settle();
      rank.meet();
      if (!turn.more()) return;
      const Seconds begin = clock();
      rank.run(kind);
      ends[static_cast<std::size_t>(transport.rank())] = clock().value;
      rank.meet();
      if (!first) continue;
      if (i >= rule.warm_up)
        times.push_back(*std::max_element(ends.begin(), ends.end()) - begin.value);
      const int n = static_cast<int>(times.size());
      const bool known = n >= rule.least && summarised(times).relative_error <= rule.relative_error;
      turn.set(n < 2 || (n < rule.most && !known && clock() - opening < rule.longest));
    }
  });
  return summarised(times);
}

}  // namespace calibrate
