// Published closed forms of pipeline time for equal stages: the reference for the simulator's tests
// and a cheap bound for the search.
//
// Let t_f and t_b be the forward and backward time of one micro-batch on one stage (1/p of the
// model on 1/p of the devices: the complete model's times divided by p), and s = t_f + t_b:
//   ideal m·s;  serial m·p·s;  GPipe and 1F1B (m + p - 1)·s, bubble (p - 1)/m;
//   interleaved (m·v + p - 1)·s/v with s/v per chunk, bubble (p - 1)/(v·m)   (arXiv:2104.04473,
//   section 2.2).
// Zero-bubble schedules (Qi et al. 2024, arXiv:2401.10241, table 2) split the backward; t_b is then
// the input gradient and t_w the weight gradient. The longest span of a rank, from its first start
// to its last end, is m·(t_f + t_b + t_w) + (p - 1)·(t_f + t_b - t_w) for zero-bubble-h1 and the
// same with (p - 1)·(t_f + t_b - 2·t_w) for -h2; -v has no bubble when all three are equal, and
// v-half some half of 1F1B's.
#pragma once

#include "costmodel/base/units.hpp"
#include "costmodel/schedule/simulator.hpp"

namespace costmodel {

// Time of a pipeline of equal stages, of a kind that is generated. `forward` and `backward` are the
// times of one chunk (of the entire stage when v = 1). `transfer` overlaps with computation and
// must be zero for the interleaved schedule. In 1F1B with transfers every p-th micro-batch waits
// for a full round trip.
Seconds pipeline_time(ScheduleKind kind, int p, int v, long long m, Seconds forward,
                      Seconds backward, Seconds transfer = Seconds(0),
                      Seconds weight_gradient = Seconds(0));

// The same with all that a closed form may depend on.
inline Seconds pipeline_time(ScheduleKind kind, const EvenPipeline& even) {
  return row_of(kind).time(even);
}

// The time that a rank computes in a schedule whose forwards and backwards run together.
Seconds joined_work(ScheduleKind kind, int p, long long m, const PipelineTimes& times, int rank);

// (bubble time) / (ideal time): (p-1)/m; (p-1)/(v·m) interleaved; p-1 serial; 0 ideal. For
// zero-bubble schedules with t_f = t_b = t_w: (p-1)/(3·m) for -h1, 0 for -h2 and -v.
double bubble_fraction(ScheduleKind kind, int p, int v, long long m);

// Lower bound on the end of any schedule of this kind, for stages with any times: the maximum over
// ranks of the fill before the rank's first backward, its remaining work, and the drain after its
// last backward. Of a schedule from a file only fill, work and drain are known. Equals
// pipeline_time for equal stages without transfers, except for serial and for split backwards. Of
// interleaved orders that of a larger group of micro-batches is no higher.
Seconds pipeline_lower_bound(ScheduleKind kind, int p, int v, long long m,
                             const PipelineTimes& times, const OrderChoices& choices = {});

// For schedules with split backward: a lower bound on the longest span of a rank, from its first
// start to its last end, in any schedule of this kind.
Seconds split_span_bound(ScheduleKind kind, int p, long long m, const PipelineTimes& times);

}  // namespace costmodel
