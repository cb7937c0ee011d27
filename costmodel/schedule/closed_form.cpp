#include "costmodel/schedule/closed_form.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace costmodel {

namespace {

// A round trip through `depth` stages: `depth` forwards and backwards, and the transfers between
// them.
Seconds round_trip(double depth, Seconds s, Seconds transfer) {
  return depth * s + 2 * (depth - 1) * transfer;
}

// 1F1B: rank 0 starts micro-batch j + p when micro-batch j has returned. Full round trips, then one
// for the remainder.
Seconds one_f_one_b_time(int p, long long m, Seconds s, Seconds transfer) {
  const long long trips = (m - 1) / p;
  const auto rest = static_cast<double>((m - 1) % p);
  Seconds time = (static_cast<double>(trips) + 1) * round_trip(p, s, transfer);
  if (rest > 0) time += round_trip(rest, s, transfer);
  return time;
}

}  // namespace

Seconds pipeline_time(ScheduleKind kind, int p, int v, long long m, Seconds forward,
                      Seconds backward, Seconds transfer, Seconds weight_gradient) {
  const Seconds s = forward + backward + weight_gradient;
  const auto bubble = [&](double hidden) {
    return (p - 1.0) * max(Seconds(0), forward + backward - hidden * weight_gradient);
  };
  const auto batches = static_cast<double>(m);
  switch (kind) {
    case ScheduleKind::ideal: return batches * s;
    case ScheduleKind::serial: return batches * round_trip(p, s, transfer);
    case ScheduleKind::gpipe: return (batches + p - 1) * s + 2.0 * (p - 1) * transfer;
    case ScheduleKind::one_f_one_b: return one_f_one_b_time(p, m, s, transfer);
    case ScheduleKind::interleaved: return (batches * v + p - 1) * s;
    case ScheduleKind::zero_bubble_h1: return batches * s + bubble(1);
    case ScheduleKind::zero_bubble_h2: return batches * s + bubble(2);
    case ScheduleKind::zero_bubble_v: return batches * v * s;
  }
  return {};
}

double bubble_fraction(ScheduleKind kind, int p, int v, long long m) {
  switch (kind) {
    case ScheduleKind::ideal:
    case ScheduleKind::zero_bubble_h2:
    case ScheduleKind::zero_bubble_v: return 0;
    case ScheduleKind::serial: return p - 1;
    case ScheduleKind::zero_bubble_h1: return (p - 1) / (3.0 * static_cast<double>(m));
    case ScheduleKind::gpipe:
    case ScheduleKind::one_f_one_b:
    case ScheduleKind::interleaved:
      return static_cast<double>(p - 1) / (static_cast<double>(v) * static_cast<double>(m));
  }
  return 0;
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
  const int chunks = kind == ScheduleKind::zero_bubble_v ? 2 : 1;
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
  Seconds first_backward = before(last);
  for (const Seconds forward : times.forward) first_backward += forward;
  const int own = stage_of(kind, p, chunks - 1, rank);
  for (int k = own + 1; k <= last; ++k)
    first_backward += times.backward[static_cast<std::size_t>(k)] + times.transfer;
  for (int k = 0; k < rank; ++k)
    r.fill += times.forward[static_cast<std::size_t>(k)] + times.transfer;
  const double most = kind == ScheduleKind::zero_bubble_h1 ? p - rank : 2.0 * p;
  Seconds done = std::min(most, batches) * longest;
  if (chunks == 2) done += std::max(0.0, std::min(most - batches, batches)) * (both - longest);
  r.wait = max(Seconds(0), first_backward - r.fill - done);
  return r;
}

Seconds split_lower_bound(ScheduleKind kind, int p, long long m, const PipelineTimes& times) {
  Seconds bound;
  Seconds drain;  // backward of the stages before this one
  for (int rank = 0; rank < p; ++rank) {
    const SplitRank r = split_rank(kind, p, m, times, rank);
    const Seconds busy = r.fill + r.wait + r.work;
    bound = max(bound, busy);
    if (kind == ScheduleKind::zero_bubble_v) continue;
    const Seconds final_weights = times.weight_gradient.front();
    bound = max(bound, busy - r.weight_gradients + drain + final_weights);
    drain += times.backward[static_cast<std::size_t>(rank)] + times.transfer;
  }
  return bound;
}

}  // namespace

Seconds split_span_bound(ScheduleKind kind, int p, long long m, const PipelineTimes& times) {
  Seconds bound;
  for (int rank = 0; rank < p; ++rank) {
    const SplitRank r = split_rank(kind, p, m, times, rank);
    bound = max(bound, r.wait + r.work);
  }
  return bound;
}

Seconds pipeline_lower_bound(ScheduleKind kind, int p, int v, long long m,
                             const PipelineTimes& times) {
  if (splits_backward(kind)) return split_lower_bound(kind, p, m, times);
  const auto chunk = [p](int c, int rank) {
    return static_cast<std::size_t>(std::int64_t{c} * p + rank);
  };
  const auto batches = static_cast<double>(m);
  const int last = p * v - 1;
  Seconds bound;
  Seconds all_forward;  // every stage once, transfers between them included
  for (int k = 0; k <= last; ++k) all_forward += times.forward[static_cast<std::size_t>(k)];
  if (p > 1) all_forward += last * times.transfer;
  Seconds fill;    // forward of the stages before this rank's first
  Seconds before;  // drain: backward of the stages before this rank's first
  Seconds behind;  // backward of the last chunk on the stages after this rank
  for (int r = p - 1; r > 0; --r) behind += times.backward[chunk(v - 1, r)] + times.transfer;
  for (int rank = 0; rank < p; ++rank) {
    Seconds work, forwards;
    for (int c = 0; c < v; ++c) {
      work += batches * (times.forward[chunk(c, rank)] + times.backward[chunk(c, rank)]);
      forwards += times.forward[chunk(c, rank)];
    }
    if (kind == ScheduleKind::ideal) {
      bound = max(bound, work);
      continue;
    }
    Seconds first_backward = all_forward + behind;
    Seconds done_before;  // the most forward work this rank can have done by then
    if (kind == ScheduleKind::gpipe) {
      first_backward += (batches - 1) * times.forward[chunk(v - 1, p - 1)];
      done_before = batches * forwards;
    } else if (kind == ScheduleKind::serial) {
      done_before = forwards;
    } else if (v == 1) {
      done_before = std::min<double>(p - rank, batches) * forwards;
    } else {
      const double warm_up =
          m == p ? batches * v : std::min(2.0 * (p - rank - 1) + (v - 1.0) * p + 1, batches * v);
      // Megatron's order takes p micro-batches of each chunk in turn.
      const double rounds = std::floor(warm_up / (static_cast<double>(p) * v));
      if (m == p)  // all forwards stand first, those of the last chunk with them
        first_backward += (batches - 1) * times.forward[chunk(v - 1, p - 1)];
      done_before = rounds * p * forwards;
      double left = warm_up - rounds * p * v;
      for (int c = 0; c < v && left > 0; ++c, left -= p)
        done_before += std::min<double>(left, p) * times.forward[chunk(c, rank)];
    }
    // Either the rank waited for its first backward, or it was busy all the time since the fill.
    bound = max(bound, max(first_backward - done_before, fill) + work + before);
    fill += times.forward[chunk(0, rank)] + times.transfer;
    before += times.backward[chunk(0, rank)] + times.transfer;
    if (rank + 1 < p) behind -= times.backward[chunk(v - 1, rank + 1)] + times.transfer;
  }
  return bound;
}

}  // namespace costmodel
