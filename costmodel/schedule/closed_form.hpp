// The published formulas of pipeline time, for even stages: the oracle of the simulator and a cheap
// bound for the search.
//
// With t_f, t_b the forward and backward time of one micro-batch on one stage (1/p of the model on
// 1/p of the compute, so the whole model's times divided by p) and s = t_f + t_b:
//   ideal m·s;  serial m·p·s;  GPipe and 1F1B (m + p - 1)·s, bubble (p - 1)/m;
//   interleaved (m·v + p - 1)·s/v with s/v a chunk, bubble (p - 1)/(v·m)      (arXiv:2104.04473,
//   section 2.2).
// Split backwards (Qi et al. 2024, arXiv:2401.10241, table 2), with t_w of the weight gradient, the
// longest rank's time from its first start to its last end: zero-bubble-h1
// m·(t_f + t_b + t_w) + (p - 1)·(t_f + t_b - t_w), -h2 the same with (p - 1)·(t_f + t_b - 2·t_w),
// -v without bubble when all three are equal.
#pragma once

#include <vector>

#include "costmodel/base/units.hpp"
#include "costmodel/schedule/simulator.hpp"

namespace costmodel {

// Even stages. `forward`, `backward`: of one chunk (the whole stage when v = 1). `transfer` runs
// beside computation and must be zero for the interleaved schedule. 1F1B with transfers: every p-th
// micro-batch waits for a full round trip.
Seconds pipeline_time(ScheduleKind kind, int p, int v, long long m, Seconds forward,
                      Seconds backward, Seconds transfer = Seconds(0),
                      Seconds weight_gradient = Seconds(0));

// (bubble time) / (ideal time): (p-1)/m, (p-1)/(v·m), p-1 for serial, 0 for ideal; of split
// backwards for t_f = t_b = t_w: (p-1)/(3·m) for zero-bubble-h1, 0 for -h2 and -v.
double bubble_fraction(ScheduleKind kind, int p, int v, long long m);

// No schedule of this kind ends earlier, for stages of any times: over every rank, the fill before
// its first backward, its remaining work, and the drain behind its last. Equals pipeline_time on
// even stages without transfers (not for serial, nor for split backwards).
Seconds pipeline_lower_bound(ScheduleKind kind, int p, int v, long long m,
                             const PipelineTimes& times);

// Split backwards: no rank takes less from its first start to its last end in every schedule of
// this kind.
Seconds split_span_bound(ScheduleKind kind, int p, long long m, const PipelineTimes& times);

}  // namespace costmodel
