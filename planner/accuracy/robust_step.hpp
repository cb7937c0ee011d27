// The objective by which constants are fitted to runs, and the step that minimises it where errors
// are linear in the logarithms of the constants: one step of Gauss-Newton.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace planner {

// One constant, as a variable of the step x = log(new value / old value).
struct StepVariable {
  std::vector<std::pair<std::size_t, double>> slopes;  // (run, d error / d x); other runs: 0
  double from_prior = 0;                               // log(old value / prior)
  double spread = 0;                                   // of the prior, in x; 0: no prior
  double low = 0, high = 0;                            // bounds of x; equal: x stays
};

// |error| with a parabola near zero and a bound above: a run that no constant explains pulls none.
double robust_loss(double error);

// Added to the objective for a constant `from_prior` of its prior.
double prior_loss(double from_prior, double spread);

// Minimises the sum of weight * robust_loss(error + slopes * x) and of the priors within the
// bounds. Coordinate descent on a quadratic majorant (Hunter and Lange 2004, A Tutorial on MM
// Algorithms, section 3.2): no sweep increases the objective.
std::vector<double> robust_step(std::vector<double> errors, const std::vector<double>& weights,
                                const std::vector<StepVariable>& variables);

}  // namespace planner
