// What a profiler's trace of one of a user's own runs means for the others: by kind of kernel, the
// time measured over the time of the formulas, and of which model it was.
//
// log(measured / predicted) of a kind is the site's own error, the same for all of its runs, plus
// what shapes have of their own, which runs share the more the nearer their shapes are, plus what a
// job has of its own: a Gaussian process with prior mean 0 (Rasmussen and Williams 2006, Gaussian
// Processes for Machine Learning, equation 2.23). So the job that was traced is predicted as it was
// measured, a run of other shapes by what the site has in common, and with no trace nothing
// changes. An error that is large for what is known of such kinds is a site's that the configs do
// not know, and counts for its other jobs too.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "costmodel/base/kernel_kind.hpp"
#include "costmodel/config/key.hpp"

namespace costmodel {

// What two runs are compared by.
struct TracedShape {
  std::int64_t hidden = 0, head_dim = 0, sequence = 0;
  bool compiled = false, experts = false;
  std::int64_t layers = 0, global_batch = 0;
};

struct TracedRun {
  TracedShape shape;
  // By KernelKind: measured over predicted; 1: not measured.
  std::array<double, kernel_kind_count> kinds{1, 1, 1, 1, 1, 1, 1, 1};
  // Standard deviation of its logarithm as measured: larger, the less of an iteration a kind takes.
  std::array<double, kernel_kind_count> noise{};
};

// How much of a kind's error two runs share beyond the site's own: 1 of equal shapes.
double shared_part(KernelKind kind, const TracedShape& a, const TracedShape& b);

// The trace whose shapes are nearest, and how near: 1 where they are equal. `traces`: at least one.
struct NearestTrace {
  const TracedRun* trace = nullptr;
  double share = -1;
};
NearestTrace nearest_trace(std::span<const TracedRun> traces, const TracedShape& shape);

// By KernelKind, for a run of this shape: 1 without traces.
std::array<double, kernel_kind_count> kind_factors(std::span<const TracedRun> traces,
                                                   const TracedShape& shape);

const Keys<TracedRun>& traced_run_rows();

}  // namespace costmodel
