#include "planner/accuracy/robust_step.hpp"

#include <algorithm>
#include <cmath>

namespace planner {

namespace {

constexpr double soft = 0.02, large = 0.5;
constexpr double prior_weight = 0.008;  // of a source whose runs are all off by one spread

// First and second derivative of the majorant of the objective in one variable.
struct Curve {
  double slope = 0, curvature = 0;
};

Curve curve_of(const StepVariable& v, double x, const std::vector<double>& errors,
               const std::vector<double>& weights) {
  Curve curve;
  for (const auto& [run, slope] : v.slopes) {
    const double size = std::abs(errors[run]);
    if (size > large) continue;
    const double pull = weights[run] * slope / std::max(size, soft);
    curve.slope += pull * errors[run];
    curve.curvature += pull * slope;
  }
  if (v.spread > 0) {
    const double pull = 2 * prior_weight / (v.spread * v.spread);
    curve.slope += pull * (v.from_prior + x);
    curve.curvature += pull;
  }
  return curve;
}

}  // namespace

double robust_loss(double error) {
  const double e = std::min(std::abs(error), large);
  return e < soft ? e * e / (2 * soft) + soft / 2 : e;
}

double prior_loss(double from_prior, double spread) {
  return spread > 0 ? prior_weight * std::pow(from_prior / spread, 2) : 0;
}

std::vector<double> robust_step(std::vector<double> errors, const std::vector<double>& weights,
                                const std::vector<StepVariable>& variables) {
  constexpr int sweeps = 2000;
  constexpr double finest = 1e-5;
  std::vector<double> x(variables.size());
  for (int sweep = 0; sweep < sweeps; ++sweep) {
    double longest = 0;
    for (std::size_t c = 0; c < x.size(); ++c) {
      const StepVariable& v = variables[c];
      const Curve curve = curve_of(v, x[c], errors, weights);
      if (curve.curvature <= 0) continue;
      const double to = std::clamp(x[c] - curve.slope / curve.curvature, v.low, v.high);
      const double moved = to - x[c];
      for (const auto& [run, slope] : v.slopes) errors[run] += slope * moved;
      x[c] = to;
      longest = std::max(longest, std::abs(moved));
    }
    if (longest < finest) break;
  }
  return x;
}

}  // namespace planner
