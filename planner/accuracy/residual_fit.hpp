// Fits the table of residuals to validated runs, and measures how well its intervals hold for runs
// that were not used in the fit.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "costmodel/scenario/residuals.hpp"
#include "planner/accuracy/validation.hpp"

namespace planner {

// Interpolates linearly between the sorted values; 0 for no values.
double quantile(std::vector<double> values, double fraction);

// A robust standard deviation: the distance between the 10th and the 90th percentile divided by
// that of a normal distribution. 0 for a single value.
double robust_spread(const std::vector<double>& values);

// Fits all rows of iteration time that have a prediction, except those of one source. Empty when no
// row is left.
std::optional<costmodel::ResidualTable> fit_residuals(const std::vector<ValidationRow>& rows,
                                                      const std::string& without_source = "");

// Per cent of a source's runs inside the intervals of the table fitted to the other sources; under
// the key "" that of all runs. Empty for fewer than two sources.
std::map<std::string, double> left_out_coverage(const std::vector<ValidationRow>& rows);

}  // namespace planner
