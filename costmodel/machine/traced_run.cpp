#include "costmodel/machine/traced_run.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace costmodel {

namespace {

// Standard deviations of log(measured / predicted), of the site and of its shapes.
struct KindSpread {
  double site, shapes;
};

// Those of the largest marginal likelihood, to a half of a hundredth, over the 14 profiled
// iterations of configs/evidence/extra/pytorch-h100.yaml, each stack a site, kinds that take a
// hundredth of the iteration or more (shardplan validate --format json, 2026-11-28). Of indexing,
// which two of them have, those of copies. Attention's are from before the schedule of its blocks
// was priced: on that card 0.5 and 2.5 % are left, of others nothing is known.
constexpr std::array<KindSpread, kernel_kind_count> spreads{{{0.02, 0.025},
                                                             {0.05, 0.09},
                                                             {0.035, 0.09},
                                                             {0.01, 0.06},
                                                             {0.045, 0.045},
                                                             {0.03, 0.01},
                                                             {0.005, 0.01},
                                                             {0.045, 0.045}}};

double octaves(std::int64_t a, std::int64_t b) {
  return a > 0 && b > 0 ? std::log2(static_cast<double>(a) / static_cast<double>(b)) : 0;
}

using Matrix = std::vector<std::vector<double>>;

// x of a x = b, for a symmetric positive definite `a`: elimination needs no pivots.
std::vector<double> solved(Matrix a, std::vector<double> b) {
  const std::size_t n = b.size();
  for (std::size_t k = 0; k < n; ++k) {
    for (std::size_t i = k + 1; i < n; ++i) {
      const double part = a[i][k] / a[k][k];
      for (std::size_t j = k; j < n; ++j) a[i][j] -= part * a[k][j];
      b[i] -= part * b[k];
    }
  }
  for (std::size_t k = n; k-- > 0;) {
    for (std::size_t j = k + 1; j < n; ++j) b[k] -= a[k][j] * b[j];
    b[k] /= a[k][k];
  }
  return b;
}

// The part of these variances that other jobs share. Errors of kinds cancel in an iteration, so
// what is right for one kind can mislead their sum: with each of nine traces alone the others are
// best off on average with 0.5, and none of the nine misleads the others with 0.4 or less
// (shardplan validate --traces, docs/calibrate.md). With an error of more than two standard
// deviations it nears 1.
constexpr double shared_by_jobs = 0.4, surprising = 2;

double variance_of(std::size_t kind, double shared) {
  const KindSpread& spread = spreads[kind];
  return spread.site * spread.site + spread.shapes * spread.shapes * shared;
}

double shared_variance(std::size_t kind, const TracedShape& a, const TracedShape& b, double jobs) {
  const double shapes = shared_part(static_cast<KernelKind>(kind), a, b);
  const bool same = shapes == 1 && a.layers == b.layers && a.global_batch == b.global_batch;
  return variance_of(kind, shapes) * (same ? 1 : jobs);
}

double noise_of(const TracedRun& trace, std::size_t kind) {
  // Two traces of the same shapes are two samples, never one and the same equation.
  return std::max(trace.noise[kind], 0.005);
}

double shared_by_jobs_of(std::size_t kind, std::span<const TracedRun> traces) {
  double most = surprising;
  for (const TracedRun& trace : traces) {
    const double noise = noise_of(trace, kind);
    most = std::max(most, std::abs(std::log(trace.kinds[kind])) /
                              std::sqrt(variance_of(kind, 1) + noise * noise));
  }
  return 1 - (1 - shared_by_jobs) * (surprising / most) * (surprising / most);
}

double factor_of(std::size_t kind, std::span<const TracedRun> traces, const TracedShape& shape) {
  const std::size_t n = traces.size();
  Matrix together(n, std::vector<double>(n));
  std::vector<double> errors(n);
  const double jobs = shared_by_jobs_of(kind, traces);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < n; ++j)
      together[i][j] = shared_variance(kind, traces[i].shape, traces[j].shape, jobs);
    const double noise = noise_of(traces[i], kind);
    together[i][i] += noise * noise;
    errors[i] = std::log(traces[i].kinds[kind]);
  }
  const std::vector<double> weights = solved(std::move(together), std::move(errors));
  double error = 0;
  for (std::size_t i = 0; i < n; ++i)
    error += weights[i] * shared_variance(kind, traces[i].shape, shape, jobs);
  return std::exp(error);
}

}  // namespace

// One standard deviation is two octaves of a length, an octave of the width of a model, half of one
// of the size of heads: the scales of the same likelihood, among factors of two. Of other kernels
// than products a compiler makes others, and experts add theirs.
double shared_part(KernelKind kind, const TracedShape& a, const TracedShape& b) {
  const bool attention =
      kind == KernelKind::attention_forward || kind == KernelKind::attention_backward;
  const double lengths = octaves(a.sequence, b.sequence) / 2,
               heads = 2 * octaves(a.head_dim, b.head_dim), widths = octaves(a.hidden, b.hidden);
  if (attention) return std::exp(-(lengths * lengths + heads * heads) / 2);
  double distance = lengths * lengths + widths * widths;
  constexpr double other_kernels = 4;
  if (a.compiled != b.compiled && kind != KernelKind::products) distance += other_kernels;
  if (a.experts != b.experts) distance += other_kernels;
  return std::exp(-distance / 2);
}

NearestTrace nearest_trace(std::span<const TracedRun> traces, const TracedShape& shape) {
  NearestTrace nearest;
  for (const TracedRun& trace : traces) {
    const double share = shared_part(KernelKind::elementwise, trace.shape, shape);
    if (share > nearest.share) nearest = {&trace, share};
  }
  return nearest;
}

std::array<double, kernel_kind_count> kind_factors(std::span<const TracedRun> traces,
                                                   const TracedShape& shape) {
  std::array<double, kernel_kind_count> factors{1, 1, 1, 1, 1, 1, 1, 1};
  if (traces.empty()) return factors;
  for (std::size_t kind = 0; kind < factors.size(); ++kind)
    factors[kind] = factor_of(kind, traces, shape);
  return factors;
}

namespace {

template <std::array<double, kernel_kind_count> TracedRun::*Field>
Keys<TracedRun> kind_rows(double least, double most, std::string_view help) {
  Keys<TracedRun> keys;
  for (std::size_t kind = 0; kind < kernel_kind_count; ++kind) {
    keys.push_back(key::number<TracedRun>(
        kernel_kind_keys[kind], [kind](TracedRun& t) -> double& { return (t.*Field)[kind]; }, least,
        most, help));
  }
  return keys;
}

}  // namespace

const Keys<TracedRun>& traced_run_rows() {
  using T = TracedRun;
  static const auto kinds = kind_rows<&T::kinds>(0.05, 20, "time measured over predicted");
  static const auto noise =
      kind_rows<&T::noise>(0, 100, "standard deviation of its logarithm; 10: not measured");
  static const auto keys =
      key::rows<T>(key::source<T>(), key::map<T>("noise", std::identity{}, noise),
                   key::required(key::map<T>("kinds", std::identity{}, kinds)),
                   key::required(key::tokens<T>(
                       "hidden", [](T& t) -> std::int64_t& { return t.shape.hidden; },
                       {1, 10'000'000}, "width of the model that was traced")),
                   key::tokens<T>(
                       "head_dim", [](T& t) -> std::int64_t& { return t.shape.head_dim; },
                       {1, 1'000'000}, "columns of its heads"),
                   key::required(key::tokens<T>(
                       "sequence", [](T& t) -> std::int64_t& { return t.shape.sequence; },
                       {1, 1'000'000'000}, "tokens of its sequences")),
                   key::tokens<T>(
                       "layers", [](T& t) -> std::int64_t& { return t.shape.layers; },
                       {1, 1'000'000}, "its layers"),
                   key::tokens<T>(
                       "global_batch", [](T& t) -> std::int64_t& { return t.shape.global_batch; },
                       {1, 1'000'000'000}, "sequences of its iteration"),
                   key::flag<T>(
                       "compiled", [](T& t) -> bool& { return t.shape.compiled; },
                       "whether a compiler made its kernels"),
                   key::flag<T>(
                       "experts", [](T& t) -> bool& { return t.shape.experts; },
                       "whether it has layers of experts"));
  return keys;
}

}  // namespace costmodel
