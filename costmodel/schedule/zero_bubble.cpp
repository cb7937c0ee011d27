#include "costmodel/schedule/zero_bubble.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "costmodel/base/error.hpp"

namespace costmodel {

namespace {

using Actions = std::vector<Action>;

// Gaps from rounding do not count as bubbles.
constexpr double relative_slack = 1e-9;

// `warm_up` forwards, then backward and forward in turn, then the remaining backwards.
Actions h_order(int rank, int m, int warm_up) {
  Actions list;
  for (int j = 0; j < warm_up; ++j) list.push_back({ActionKind::forward, rank, j});
  for (int j = 0; j < m; ++j) {
    list.push_back({ActionKind::backward, rank, j});
    if (warm_up + j < m) list.push_back({ActionKind::forward, rank, warm_up + j});
  }
  return list;
}

// The V: the first chunk's forwards fill the pipeline down, the second chunk's bring them back up,
// and every rank meets its first backward when it holds 2p chunks (appendix of arXiv:2405.15362;
// the order that PyTorch's ZBV and the zero-bubble fork of Megatron run).
class VOrder {
 public:
  VOrder(int rank, int ranks, int micro_batches)
      : stages_{rank, 2 * ranks - 1 - rank}, batches_(micro_batches) {
    const int whole = std::max(micro_batches, 2 * ranks);  // short ones: the longer one, thinned
    for (int i = 0; i < 2 * (ranks - rank) - 1; ++i) forward(0);
    for (int i = 0; i < rank; ++i) {
      forward(1);
      forward(0);
    }
    for (int i = 0; i < ranks - rank; ++i) {
      forward(1);
      backward(1);
    }
    while (forwards_[1] < whole) {
      if (forwards_[0] < whole) forward(0);
      backward(0);
      forward(1);
      backward(1);
    }
    for (int i = 0; i < rank; ++i) {
      backward(0);
      backward(1);
    }
    for (int i = 0; i < ranks - rank; ++i) backward(0);
  }
  Actions list;

 private:
  void forward(int chunk) { add(ActionKind::forward, chunk, forwards_[chunk]++); }
  void backward(int chunk) { add(ActionKind::backward, chunk, backwards_[chunk]++); }
  void add(ActionKind kind, int chunk, int micro_batch) {
    if (micro_batch < batches_) list.push_back({kind, stages_[chunk], micro_batch});
  }
  int stages_[2];
  int batches_;
  int forwards_[2] = {0, 0};
  int backwards_[2] = {0, 0};
};

// Inserts weight gradients between the actions of a fixed order, which it executes with the
// simulator's rules.
class Filler {
 public:
  Filler(const Schedule& order, const PipelineTimes& times, const HeldShares& shares)
      : order_(order),
        times_(times),
        shares_(shares),
        limit_(held_limit(order.kind, order.ranks)),
        ranks_(static_cast<std::size_t>(order.ranks)),
        ends_(static_cast<std::size_t>(std::int64_t{2} * order.stages() * order.micro_batches),
              -1.0),
        out_{order.kind, order.ranks, order.chunks, order.micro_batches, {}} {
    out_.actions.resize(ranks_.size());
    for (auto& list : out_.actions) {
      list.reserve(static_cast<std::size_t>(std::int64_t{3} * order.chunks * order.micro_batches));
    }
  }

  Schedule run() {
    for (bool progress = true; progress;) {
      progress = false;
      for (int rank = 0; rank < order_.ranks; ++rank) progress |= advance(rank);
      for (int rank = order_.ranks; rank-- > 0;) progress |= advance(rank);
    }
    for (int rank = 0; rank < order_.ranks; ++rank) {
      SHARDPLAN_CHECK(at(rank).next == list(rank).size());
      while (at(rank).pending()) run_weight_gradient(rank);
    }
    return std::move(out_);
  }

 private:
  struct Rank {
    std::size_t next = 0;           // in its order
    double free = 0;                // when its last action ends
    double idle = 0;                // bubbles since its first action
    double held = 0;                // by forwards and waiting weight gradients, in micro-batches
    std::vector<Action> backwards;  // done; the weight gradients of those from `first` on wait
    std::size_t first = 0;
    bool pending() const { return first < backwards.size(); }
  };

  Rank& at(int rank) { return ranks_[static_cast<std::size_t>(rank)]; }
  const Actions& list(int rank) const { return order_.actions[static_cast<std::size_t>(rank)]; }
  double& end_of(ActionKind kind, int stage, int micro_batch) {
    const std::int64_t direction = kind == ActionKind::backward ? 1 : 0;
    return ends_[static_cast<std::size_t>(
        (std::int64_t{2} * stage + direction) * order_.micro_batches + micro_batch)];
  }
  bool elsewhere(int stage, int rank) const {
    return stage >= 0 && stage < order_.stages() && order_.home_of(stage) != rank;
  }

  // Time when an action's input has arrived; negative while that has not run.
  double ready(const Action& a, int rank) {
    const int from = a.kind == ActionKind::forward ? a.stage - 1 : a.stage + 1;
    if (from < 0) return 0;
    if (from == order_.stages()) return end_of(ActionKind::forward, a.stage, a.micro_batch);
    const double end = end_of(a.kind, from, a.micro_batch);
    return end < 0 || !elsewhere(from, rank) ? end : end + times_.transfer.value;
  }

  double next_weight_gradient(const Rank& r) const {
    return times_.weight_gradient[static_cast<std::size_t>(r.backwards[r.first].stage)].value;
  }

  void run_weight_gradient(int rank) {
    Rank& r = at(rank);
    r.free += next_weight_gradient(r);
    const Action& a = r.backwards[r.first++];
    out_.actions[static_cast<std::size_t>(rank)].push_back(
        {ActionKind::weight_gradient, a.stage, a.micro_batch});
    r.held -= shares_.pending[static_cast<std::size_t>(a.stage)];
  }

  // First where memory requires it; then in gaps that hold a weight gradient; then in smaller gaps
  // that would otherwise make this rank's bubbles the largest.
  void fill(int rank, const Action& next, double ready) {
    Rank& r = at(rank);
    if (next.kind == ActionKind::forward) {
      const double more = shares_.forward[static_cast<std::size_t>(next.stage)];
      while (r.pending() && r.held + more > limit_ * (1 + relative_slack))
        run_weight_gradient(rank);
    }
    while (r.pending() && r.free + next_weight_gradient(r) <= ready * (1 + relative_slack))
      run_weight_gradient(rank);
    const double gap = ready - r.free;
    if (r.pending() && gap > 0 && r.idle + gap > most_idle_ * (1 + relative_slack))
      run_weight_gradient(rank);
  }

  void run_action(int rank, const Action& a, double ready) {
    Rank& r = at(rank);
    const bool forward = a.kind == ActionKind::forward;
    const double start = std::max(r.free, ready);
    if (r.next > 0) r.idle += start - r.free;
    most_idle_ = std::max(most_idle_, r.idle);
    const auto& durations = forward ? times_.forward : times_.backward;
    const double end = start + durations[static_cast<std::size_t>(a.stage)].value;
    end_of(a.kind, a.stage, a.micro_batch) = end;
    const bool sends = elsewhere(forward ? a.stage + 1 : a.stage - 1, rank);
    r.free = end + (times_.blocking && sends ? times_.transfer.value : 0.0);
    out_.actions[static_cast<std::size_t>(rank)].push_back(a);
    ++r.next;
    const double kept = shares_.forward[static_cast<std::size_t>(a.stage)];
    r.held += forward ? kept : shares_.pending[static_cast<std::size_t>(a.stage)] - kept;
    if (forward) return;
    r.backwards.push_back(a);
    while (r.pending() && r.held > limit_ * (1 + relative_slack)) run_weight_gradient(rank);
  }

  bool advance(int rank) {
    bool progress = false;
    for (const Actions& actions = list(rank); at(rank).next < actions.size();) {
      const Action& next = actions[at(rank).next];
      const double arrives = ready(next, rank);
      if (arrives < 0) break;
      fill(rank, next, arrives);
      run_action(rank, next, arrives);
      progress = true;
    }
    return progress;
  }

  const Schedule& order_;
  const PipelineTimes& times_;
  const HeldShares& shares_;
  double limit_;
  double most_idle_ = 0;
  std::vector<Rank> ranks_;
  std::vector<double> ends_;
  Schedule out_;
};

}  // namespace

int held_limit(ScheduleKind kind, int ranks) {
  return kind == ScheduleKind::zero_bubble_h2 ? 2 * ranks : ranks;
}

std::vector<int> split_warm_up(ScheduleKind kind, int ranks, int micro_batches,
                               const PipelineTimes& times) {
  std::vector<int> counts;
  for (int rank = 0; rank < ranks; ++rank) counts.push_back(ranks - rank);
  if (kind == ScheduleKind::zero_bubble_h2) {
    std::vector<double> fill{0}, pace;  // first forward's start; slowest forward up to here
    double slowest = 0;
    for (const Seconds forward : times.forward) {
      fill.push_back(fill.back() + forward.value + times.transfer.value);
      slowest = std::max(slowest, forward.value);
      pace.push_back(slowest);
    }
    double ready = fill.back() - times.transfer.value;  // the first backward on this rank
    for (auto r = static_cast<std::size_t>(ranks); r-- > 0;) {
      const double spare = ready - fill[r] - times.forward[r].value;
      const double more = std::floor(spare / pace[r] * (1 + relative_slack));
      counts[r] = std::max(counts[r], 1 + static_cast<int>(std::min(more, 2.0 * ranks - 1)));
      ready += times.backward[r].value + times.transfer.value;
    }
    // A rank runs at least one forward more than the next before its first backward.
    for (std::size_t r = 1; r < counts.size(); ++r)
      counts[r] = std::min(counts[r], counts[r - 1] - 1);
  }
  for (int& count : counts) count = std::min(count, micro_batches);
  return counts;
}

Schedule generate_v_order(int ranks, int micro_batches) {
  Schedule order{ScheduleKind::zero_bubble_v, ranks, 2, micro_batches, {}};
  for (int rank = 0; rank < ranks; ++rank)
    order.actions.push_back(VOrder(rank, ranks, micro_batches).list);
  return order;
}

Schedule generate(ScheduleKind kind, int ranks, int chunks, int micro_batches,
                  const PipelineTimes& times, const HeldShares& shares) {
  if (!splits_backward(kind)) return generate(kind, ranks, chunks, micro_batches);
  SHARDPLAN_CHECK(ranks >= 1 && micro_batches >= 1);
  SHARDPLAN_CHECK(chunks == (kind == ScheduleKind::zero_bubble_v ? 2 : 1));
  SHARDPLAN_CHECK(times.weight_gradient.size() == times.forward.size());
  if (kind == ScheduleKind::zero_bubble_v)
    return Filler(generate_v_order(ranks, micro_batches), times, shares).run();
  Schedule order{kind, ranks, 1, micro_batches, {}};
  const auto warm_up = split_warm_up(kind, ranks, micro_batches, times);
  for (int rank = 0; rank < ranks; ++rank)
    order.actions.push_back(h_order(rank, micro_batches, warm_up[static_cast<std::size_t>(rank)]));
  return Filler(order, times, shares).run();
}

}  // namespace costmodel
