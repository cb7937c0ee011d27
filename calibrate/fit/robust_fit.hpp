// Fits the constants of a formula to measurements with outliers: Huber's estimator (Huber 1964) by
// bounded Levenberg-Marquardt (Marquardt 1963) with iterative reweighting (Holland and Welsch
// 1977). Deterministic.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

namespace calibrate {

struct Bounded {
  double start, least, most;
};

// The error of one point for given constants; for times, log(predicted / measured).
using Residual = std::function<double(const std::vector<double>& values, std::size_t point)>;

struct RobustFit {
  std::vector<double> values;
  double mean_error = 0;  // mean of |residual|
};

// Starts from each parameter's `start`. Points beyond 1.345 robust standard deviations (from the
// median absolute residual) have constant influence.
RobustFit fit_robustly(const std::vector<Bounded>& parameters, std::size_t points,
                       const Residual& residual);

// The q-quantile, q in [0, 1], by linear interpolation; 0 when empty.
double quantile(std::vector<double> values, double q);

}  // namespace calibrate
