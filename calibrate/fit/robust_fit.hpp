// Fitting the constants of a formula to measurements of which some are wrong: Huber's estimator
// (Huber 1964) by Levenberg-Marquardt (Marquardt 1963) with bounds, reweighted (Holland and Welsch
// 1977). No randomness: the same input gives the same constants.
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

// Starts at `start` of every parameter. Points further off than 1.345 robust standard deviations
// (from the median absolute residual) pull with constant force only.
RobustFit fit_robustly(const std::vector<Bounded>& parameters, std::size_t points,
                       const Residual& residual);

// The q-th quantile, 0 to 1, linear between the two nearest; 0 for none.
double quantile(std::vector<double> values, double q);

}  // namespace calibrate
