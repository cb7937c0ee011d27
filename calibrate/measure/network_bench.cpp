#include "calibrate/measure/network_bench.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <span>
#include <vector>

#include "costmodel/base/error.hpp"
#include "runtime/backend/tags.hpp"
#include "runtime/ranks/collectives.hpp"
#include "runtime/ranks/thread_transport.hpp"

namespace calibrate {

using namespace costmodel;

namespace {

using Floats = std::vector<float>;

std::size_t floats_in(std::int64_t bytes) {
  return std::max<std::size_t>(1, static_cast<std::size_t>(bytes) / sizeof(float));
}

// Keeps the compiler from removing unused results.
void read_once(const Floats& values) { asm volatile("" : : "r"(values.data()) : "memory"); }

class Rank {
 public:
  // One of the transport's first `ranks`.
  Rank(runtime::Transport& transport, std::int64_t bytes, int ranks)
      : transport_(transport),
        ranks_(ranks),
        communicator_(transport, first_of(transport, ranks), traffic_),
        values_(floats_in(bytes), 1e-3F) {}

  void meet() { communicator_.barrier(runtime::control_tag(1)); }

  // On rank 0 the maximum over all ranks' times; elsewhere the rank's own.
  Seconds slowest(Seconds own) {
    if (transport_.rank() != 0) {
      tell(0, own.value);
      return own;
    }
    for (int other = 1; other < ranks_; ++other) own = max(own, Seconds(heard(other)));
    return own;
  }

  // Rank 0's decision.
  bool agreed(bool more) {
    if (transport_.rank() != 0) return heard(0) != 0;
    for (int other = 1; other < ranks_; ++other) tell(other, more ? 1 : 0);
    return more;
  }

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

  // Resets the values, because sums would grow without bound.
  void settle() { std::ranges::fill(values_, 1e-3F); }

 private:
  static runtime::Group first_of(const runtime::Transport& transport, int count) {
    std::vector<int> ranks(static_cast<std::size_t>(count));
    std::iota(ranks.begin(), ranks.end(), 0);
    return group_of(transport, ranks);
  }

  void tell(int to, double value) {
    transport_.send(to, runtime::control_tag(2), std::as_bytes(std::span(&value, 1)));
  }

  double heard(int from) {
    double value = 0;
    transport_.recv(from, runtime::control_tag(2), std::as_writable_bytes(std::span(&value, 1)));
    return value;
  }

  void pass_on() {
    const int tag = runtime::forward_tag(0, 0);
    if (transport_.rank() == 0) transport_.send(1, tag, std::as_bytes(std::span(values_)));
    if (transport_.rank() == 1) transport_.recv(0, tag, std::as_writable_bytes(std::span(values_)));
  }

  runtime::Transport& transport_;
  int ranks_;
  runtime::TrafficCount traffic_;
  runtime::Communicator communicator_;
  Floats values_;
};

// Runs as one of the participating ranks; rank 0's result counts.
Timing time_as_rank(runtime::Transport& transport, CollectiveKind kind, std::int64_t bytes,
                    int ranks, const StopRule& rule) {
  std::vector<double> times;
  Rank rank(transport, bytes, ranks);
  const Clock clock = wall_clock();
  const Seconds opening = clock();
  for (int i = 0;; ++i) {
    rank.settle();
    rank.meet();
    const Seconds begin = clock();
    rank.run(kind);
    const Seconds slowest = rank.slowest(clock() - begin);
    if (i >= rule.warm_up) times.push_back(slowest.value);
    const int n = static_cast<int>(times.size());
    const bool known = n >= rule.least && summarised(times).relative_error <= rule.relative_error;
    const bool more = n < 2 || (n < rule.most && !known && clock() - opening < rule.longest);
    if (!rank.agreed(more)) return summarised(times);
  }
}

// Rank 0's request to the others.
struct Request {
  CollectiveKind kind = CollectiveKind::send;
  std::int64_t bytes = 0;
  int ranks = 0;  // 0: that was all
};

void ask(runtime::Transport& transport, const Request& request) {
  for (int other = 1; other < transport.size(); ++other)
    transport.send(other, runtime::control_tag(3), std::as_bytes(std::span(&request, 1)));
}

void take_part(runtime::Transport& transport) {
  for (;;) {
    Request request;
    transport.recv(0, runtime::control_tag(3), std::as_writable_bytes(std::span(&request, 1)));
    if (request.ranks == 0) return;
    if (transport.rank() < request.ranks)
      time_as_rank(transport, request.kind, request.bytes, request.ranks, {});
  }
}

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
  Timing timing;
  runtime::run_ranks(ranks, {}, [&](runtime::Transport& transport) {
    const Timing own = time_as_rank(transport, kind, bytes, ranks, rule);
    if (transport.rank() == 0) timing = own;
  });
  return timing;
}

void with_ranks(runtime::Transport& transport,
                const std::function<void(const CollectiveTimer&)>& lead) {
  if (transport.rank() != 0) return take_part(transport);
  lead([&](CollectiveKind kind, std::int64_t bytes, int ranks, const StopRule& rule) {
    ask(transport, {kind, bytes, ranks});
    return time_as_rank(transport, kind, bytes, ranks, rule);
  });
  ask(transport, {});
}

}  // namespace calibrate
