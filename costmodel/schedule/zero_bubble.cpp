#include "costmodel/schedule/zero_bubble.hpp"

#include <algorithm>
#include <utility>

#include "costmodel/base/error.hpp"

namespace costmodel {

namespace {

// Gaps from rounding do not count as bubbles.
constexpr double relative_slack = 1e-9;

// Whether a weight gradient is put into a gap that is shorter, and so delays the next action: where
// the rank's bubbles would become the largest of all, never, or always.
enum class SmallGaps { of_the_largest, none, all };

struct Filled {
  Schedule schedule;
  double span = 0;          // of a rank from its first start to its last end, the longest
  bool small_gaps = false;  // there were any
};

// Inserts weight gradients between the actions of a fixed order, which it executes with the
// simulator's rules.
class Filler {
 public:
  Filler(const Schedule& order, const PipelineTimes& times, const HeldShares& shares, double limit,
         SmallGaps small)
      : order_(order),
        times_(times),
        shares_(shares),
        limit_(limit),
        small_(small),
        ranks_(static_cast<std::size_t>(order.ranks)),
        ends_(static_cast<std::size_t>(std::int64_t{2} * order.stages() * order.micro_batches),
              -1.0),
        filled_{{order.kind, order.ranks, order.chunks, order.micro_batches, {}}},
        out_(filled_.schedule) {
    out_.actions.resize(ranks_.size());
    for (auto& list : out_.actions) {
      list.reserve(static_cast<std::size_t>(std::int64_t{3} * order.chunks * order.micro_batches));
    }
  }

  Filled run() {
    for (bool progress = true; progress;) {
      progress = false;
      for (int rank = 0; rank < order_.ranks; ++rank) progress |= advance(rank);
      for (int rank = order_.ranks; rank-- > 0;) progress |= advance(rank);
    }
    for (int rank = 0; rank < order_.ranks; ++rank) {
      SHARDPLAN_CHECK(at(rank).next == list(rank).size());
      while (at(rank).pending()) run_weight_gradient(rank);
      filled_.span = std::max(filled_.span, at(rank).free - at(rank).begin);
    }
    return std::move(filled_);
  }

 private:
  struct Rank {
    std::size_t next = 0;           // in its order
    double begin = 0;               // when its first action starts
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
  bool elsewhere(int stage, int rank) const {  // no kind that goes two ways comes here
    return stage >= 0 && stage < order_.stages() && order_.home_of(stage, 0) != rank;
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

  // First where memory requires it; then in gaps that hold a weight gradient; then in smaller gaps.
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
    if (!r.pending() || gap <= 0) return;
    filled_.small_gaps = true;
    const bool largest = r.idle + gap > most_idle_ * (1 + relative_slack);
    if (small_ == SmallGaps::all || (small_ == SmallGaps::of_the_largest && largest))
      run_weight_gradient(rank);
  }

  void run_action(int rank, const Action& a, double ready) {
    Rank& r = at(rank);
    const bool forward = a.kind == ActionKind::forward;
    const double start = std::max(r.free, ready);
    (r.next > 0 ? r.idle : r.begin) += start - r.free;
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
  SmallGaps small_;
  double most_idle_ = 0;
  std::vector<Rank> ranks_;
  std::vector<double> ends_;
  Filled filled_;
  Schedule& out_;  // of filled_
};

}  // namespace

double held_limit(ScheduleKind kind, int ranks, const OrderChoices& choices) {
  const double published = row_of(kind).held_limit(ranks);
  return choices.in_flight > 0 ? std::min<double>(choices.in_flight, published) : published;
}

Schedule generate(ScheduleKind kind, int ranks, int chunks, int micro_batches,
                  const PipelineTimes& times, const HeldShares& shares,
                  const OrderChoices& choices) {
  const bool fills = row_of(kind).held_limit != nullptr;
  if (!fills) return generate(kind, ranks, chunks, micro_batches, choices);
  SHARDPLAN_CHECK(ranks >= 1 && micro_batches >= 1 && takes_chunks(kind, chunks));
  SHARDPLAN_CHECK(times.weight_gradient.size() == times.forward.size());
  const Schedule order{kind, ranks, chunks, micro_batches,
                       row_of(kind).order({ranks, chunks, micro_batches, &times, choices})};
  const auto filled = [&](SmallGaps small) {
    return Filler(order, times, shares, held_limit(kind, ranks, choices), small).run();
  };
  Filled best = filled(SmallGaps::of_the_largest);
  if (!best.small_gaps) return std::move(best.schedule);
  for (const SmallGaps small : {SmallGaps::none, SmallGaps::all}) {
    Filled other = filled(small);
    if (other.span < best.span * (1 - relative_slack)) best = std::move(other);
  }
  return std::move(best.schedule);
}

}  // namespace costmodel
