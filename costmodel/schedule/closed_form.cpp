#include "costmodel/schedule/closed_form.hpp"

#include <algorithm>
#include <cmath>

namespace costmodel {

Seconds pipeline_time(ScheduleKind kind, int p, int v, long long m, Seconds forward,
                      Seconds backward, Seconds transfer, Seconds weight_gradient) {
  return row_of(kind).time(
      {p, v, static_cast<double>(m), forward, backward, transfer, weight_gradient});
}

Seconds joined_work(ScheduleKind kind, int p, long long m, const PipelineTimes& times, int rank) {
  const bool two_way = row_of(kind).two_way;
  const EvenPipeline sizes{p, 1, static_cast<double>(m), {}, {}, {}, {}};
  const int chunks = 2;
  Seconds work;
  for (int chunk = 0; chunk < chunks; ++chunk) {
    const auto k = static_cast<std::size_t>(stage_of(kind, p, chunk, rank));
    const auto other = static_cast<std::size_t>(stage_of(kind, p, 1 - chunk, rank));
    const double each = two_way ? sizes.micro_batches / 2 : sizes.micro_batches;
    work += each * (times.forward[k] + times.backward[k] + times.weight_gradient[k]);
    if (times.together.empty()) continue;
    const Seconds apart = times.forward[k] + times.backward[other] + times.weight_gradient[other];
    work -= row_of(kind).joined(rank, chunk, sizes) * (apart - times.together[k]);
  }
  return work;
}

double bubble_fraction(ScheduleKind kind, int p, int v, long long m) {
  return row_of(kind).bubble({p, v, static_cast<double>(m), {}, {}, {}, {}});
}

namespace {

// The terms of the bound on one rank, for a schedule with split backward.
struct SplitRank {
  Seconds fill;  // its first forward starts then
  Seconds wait;  // idle before its first backward, which only few forwards can fill
  Seconds work;  // of all micro-batches
  Seconds weight_gradients;
};

SplitRank split_rank(ScheduleKind kind, int p, long long m, const PipelineTimes& times, int rank) {
  const ScheduleRow& row = row_of(kind);
  const int chunks = static_cast<int>(times.forward.size()) / p;
  const int last = p * chunks - 1;
  const auto batches = static_cast<double>(m);
  const auto before = [&](int stage) {  // transfers on the way to a stage: the V turns without one
    return (stage < p ? stage : stage - 1) * times.transfer;
  };
  SplitRank r;
  Seconds longest, both;
  for (int c = 0; c < chunks; ++c) {
    const auto k = static_cast<std::size_t>(stage_of(kind, p, c, rank));
    r.work += batches * (times.forward[k] + times.backward[k] + times.weight_gradient[k]);
    r.weight_gradients += batches * times.weight_gradient[k];
    longest = max(longest, times.forward[k]);
    both += times.forward[k];
  }
  for (int k = 0; k < rank; ++k)
    r.fill += times.forward[static_cast<std::size_t>(k)] + times.transfer;
  if (row.forwards_first == nullptr) return r;
  Seconds first_backward = before(last);
  for (const Seconds forward : times.forward) first_backward += forward;
  const int own = stage_of(kind, p, chunks - 1, rank);
  for (int k = own + 1; k <= last; ++k)
    first_backward += times.backward[static_cast<std::size_t>(k)] + times.transfer;
  const double most = row.forwards_first(rank, {p, chunks, batches, {}, {}, {}, {}});
  Seconds done = std::min(most, batches) * longest;
  if (chunks == 2) done += std::max(0.0, std::min(most - batches, batches)) * (both - longest);
  r.wait = max(Seconds(0), first_backward - r.fill - done);
  return r;
}

// Of a schedule whose forwards and backwards run together only the work is counted.
Seconds joined_bound(ScheduleKind kind, int p, long long m, const PipelineTimes& times) {
  Seconds bound;
  for (int rank = 0; rank < p; ++rank) bound = max(bound, joined_work(kind, p, m, times, rank));
  return bound;
}

Seconds split_lower_bound(ScheduleKind kind, int p, long long m, const PipelineTimes& times) {
  if (overlaps(kind)) return joined_bound(kind, p, m, times);
  Seconds bound;
  Seconds drain;  // backward of the stages before this one
  for (int rank = 0; rank < p; ++rank) {
    const SplitRank r = split_rank(kind, p, m, times, rank);
    const Seconds busy = r.fill + r.wait + r.work;
    bound = max(bound, busy);
    if (row_of(kind).folded) continue;
    const Seconds final_weights = times.weight_gradient.front();
    bound = max(bound, busy - r.weight_gradients + drain + final_weights);
    drain += times.backward[static_cast<std::size_t>(rank)] + times.transfer;
  }
  return bound;
}

}  // namespace

Seconds split_span_bound(ScheduleKind kind, int p, long long m, const PipelineTimes& times) {
  if (overlaps(kind)) return joined_bound(kind, p, m, times);
  Seconds bound;
  for (int rank = 0; rank < p; ++rank) {
    const SplitRank r = split_rank(kind, p, m, times, rank);
    bound = max(bound, r.wait + r.work);
  }
  return bound;
}

namespace {

// The times of a rank's chunks. A sender that waits for its transfer is as one that computes so
// much longer and then sends in no time.
class ChunkTimes {
 public:
  ChunkTimes(ScheduleKind kind, int p, int v, const PipelineTimes& times)
      : times_(times),
        p_(p),
        last_(p * v - 1),
        folded_(row_of(kind).folded),
        hold_(times.blocking && p > 1 && row_of(kind).waits ? times.transfer : Seconds(0)),
        plain_(!folded_ && hold_.value == 0) {}

  Seconds forward(int chunk, int rank) const {
    const int k = chunk * p_ + rank;
    return plain_ ? times_.forward[static_cast<std::size_t>(k)] : forward(stage(chunk, rank));
  }
  Seconds backward(int chunk, int rank) const {
    const int k = plain_ ? chunk * p_ + rank : stage(chunk, rank);
    if (plain_) return times_.backward[static_cast<std::size_t>(k)];
    const bool sends = k > 0 && !(folded_ && k % p_ == 0);
    return times_.backward[static_cast<std::size_t>(k)] + (sends ? hold_ : Seconds(0));
  }
  Seconds forward(int stage) const {
    const bool sends = stage < last_ && !(folded_ && (stage + 1) % p_ == 0);
    return times_.forward[static_cast<std::size_t>(stage)] + (sends ? hold_ : Seconds(0));
  }
  // Of a transfer to another rank, beyond what its sender waits.
  Seconds transfer() const { return times_.blocking ? Seconds(0) : times_.transfer; }
  int last() const { return last_; }

 private:
  int stage(int chunk, int rank) const {
    return chunk * p_ + (folded_ && chunk % 2 == 1 ? p_ - 1 - rank : rank);
  }

  const PipelineTimes& times_;
  int p_, last_;
  bool folded_;
  Seconds hold_;
  bool plain_;  // chunk c of rank r is stage c p + r, and nobody waits for a transfer
};

// The most forward work that a rank can have done before its first backward, whose forwards of all
// its chunks take `forwards` for one micro-batch.
Seconds done_before(double first, const EvenPipeline& e, int rank, Seconds forwards,
                    const ChunkTimes& times) {
  first = std::min(first, e.micro_batches * e.chunks);
  if (e.chunks == 1) return first * forwards;
  // Megatron's order takes a group of micro-batches of each chunk in turn, p of them unless chosen.
  const int v = e.chunks;
  const double group =
      std::min<double>(e.choices.group > 0 ? e.choices.group : e.ranks, e.micro_batches);
  const double rounds = std::floor(first / (group * v));
  Seconds done = rounds * group * forwards;
  double left = first - rounds * group * v;
  if (rounds > 0 && std::fmod(e.micro_batches, group) != 0) {  // the last group is a smaller one
    Seconds most;
    for (int c = 0; c < v; ++c) most = max(most, times.forward(c, rank));
    return done + left * most;
  }
  for (int c = 0; c < v && left > 0; ++c, left -= group)
    done += std::min(left, group) * times.forward(c, rank);
  return done;
}

}  // namespace

Seconds pipeline_lower_bound(ScheduleKind kind, int p, int v, long long m,
                             const PipelineTimes& durations, const OrderChoices& choices) {
  const ScheduleRow& row = row_of(kind);
  if (row.splits_backward) return split_lower_bound(kind, p, m, durations);
  const ChunkTimes times(kind, p, v, durations);
  const EvenPipeline sizes{p, v, static_cast<double>(m), {}, {}, {}, {}, {}, choices};
  Seconds bound;
  Seconds all_forward;  // every stage once, transfers between them included
  for (int k = 0; k <= times.last(); ++k) all_forward += times.forward(k);
  if (p > 1) all_forward += times.last() * times.transfer();
  Seconds waiting;  // of the last stage's first backward, when all of its forwards stand before it
  if (row.forwards_first != nullptr && row.forwards_first(p - 1, sizes) >= sizes.micro_batches * v)
    waiting = (sizes.micro_batches - 1) * times.forward(v - 1, p - 1);
  Seconds fill;    // forward of the stages before this rank's first
  Seconds before;  // drain: backward of the stages before this rank's first
  Seconds behind;  // backward of the last chunk on the stages after this rank
  for (int r = p - 1; r > 0; --r) behind += times.backward(v - 1, r) + times.transfer();
  for (int rank = 0; rank < p; ++rank) {
    const Seconds first_forward = times.forward(0, rank);  // of its first chunk
    const Seconds first_backward = times.backward(0, rank);
    Seconds work = sizes.micro_batches * (first_forward + first_backward);
    Seconds forwards = first_forward;
    for (int c = 1; c < v; ++c) {
      const Seconds forward = times.forward(c, rank);
      work += sizes.micro_batches * (forward + times.backward(c, rank));
      forwards += forward;
    }
    if (!row.waits) {
      bound = max(bound, work);
      continue;
    }
    // Either the rank waited for its first backward, or it was busy all the time since the fill.
    Seconds start = fill;
    if (row.forwards_first != nullptr) {
      const double first = row.forwards_first(rank, sizes);
      const Seconds turn = all_forward + behind + waiting;  // its first backward starts then
      start = max(turn - done_before(first, sizes, rank, forwards, times), fill);
    }
    bound = max(bound, start + work + before);
    fill += first_forward + times.transfer();
    before += first_backward + times.transfer();
    if (rank + 1 < p) behind -= times.backward(v - 1, rank + 1) + times.transfer();
  }
  return bound;
}

}  // namespace costmodel
