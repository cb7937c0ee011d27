// The table of residuals fitted to validated runs, and how well its intervals hold for runs it has
// not seen.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "costmodel/scenario/residuals.hpp"
#include "planner/accuracy/validation.hpp"

namespace planner {

// Linear between the sorted values; 0 for none.
double quantile(std::vector<double> values, double fraction);

// A standard deviation that a few outliers leave alone: the distance between the 10th and the 90th
// percentile, over that of a normal distribution. 0 for a single value.
double robust_spread(const std::vector<double>& values);

// Of all rows of iteration time that have a prediction, but those of one source. Nothing when no
// row is left.
std::optional<costmodel::ResidualTable> fit_residuals(const std::vector<ValidationRow>& rows,
                                                      const std::string& without_source = "");

// Per cent of a source's runs inside the intervals of the table fitted to the other sources, and of
// all runs ("" as source). Empty for fewer than two sources.
std::map<std::string, double> left_out_coverage(const std::vector<ValidationRow>& rows);

}  // namespace planner
