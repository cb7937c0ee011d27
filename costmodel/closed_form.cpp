#include "costmodel/closed_form.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace costmodel {

namespace {

// A zigzag through `depth` stages and back: `depth` forwards and backwards, and the transfers
// between them.
Seconds round_trip(double depth, Seconds s, Seconds transfer) {
  return depth * s + 2 * (depth - 1) * transfer;
}

// 1F1B: rank 0 starts micro-batch j + p when micro-batch j is back. Full round trips, then one for
// the remainder.
Seconds one_f_one_b_time(int p, long long m, Seconds s, Seconds transfer) {
  const long long trips = (m - 1) / p;
  const auto rest = static_cast<double>((m - 1) % p);
  Seconds time = (static_cast<double>(trips) + 1) * round_trip(p, s, transfer);
  if (rest > 0) time += round_trip(rest, s, transfer);
  return time;
}

}  // namespace

Seconds pipeline_time(ScheduleKind kind, int p, int v, long long m, Seconds forward,
                      Seconds backward, Seconds transfer) {
  const Seconds s = forward + backward;
  const auto batches = static_cast<double>(m);
  switch (kind) {
    case ScheduleKind::ideal: return batches * s;
    case ScheduleKind::serial: return batches * round_trip(p, s, transfer);
    case ScheduleKind::gpipe: return (batches + p - 1) * s + 2.0 * (p - 1) * transfer;
    case ScheduleKind::one_f_one_b: return one_f_one_b_time(p, m, s, transfer);
    case ScheduleKind::interleaved: return (batches * v + p - 1) * s;
  }
  return {};
}

double bubble_fraction(ScheduleKind kind, int p, int v, long long m) {
  switch (kind) {
    case ScheduleKind::ideal: return 0;
    case ScheduleKind::serial: return p - 1;
    case ScheduleKind::gpipe:
    case ScheduleKind::one_f_one_b:
    case ScheduleKind::interleaved:
      return static_cast<double>(p - 1) / (static_cast<double>(v) * static_cast<double>(m));
  }
  return 0;
}

Seconds pipeline_lower_bound(ScheduleKind kind, int p, int v, long long m,
                             const PipelineTimes& times) {
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
  Seconds behind;  // backward of the last chunk's stages behind this rank
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
    // Either the rank waited for its first backward, or it worked all the time since the fill.
    bound = max(bound, max(first_backward - done_before, fill) + work + before);
    fill += times.forward[chunk(0, rank)] + times.transfer;
    before += times.backward[chunk(0, rank)] + times.transfer;
    if (rank + 1 < p) behind -= times.backward[chunk(v - 1, rank + 1)] + times.transfer;
  }
  return bound;
}

}  // namespace costmodel
