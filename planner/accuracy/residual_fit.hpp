// Fits the table of residuals to runs that were left out of the fit of constants.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "costmodel/scenario/residuals.hpp"
#include "planner/accuracy/refit.hpp"

namespace planner {

// The value below which `fraction` of the weight lies: (value, weight) pairs. 0 for none.
double weighted_quantile(std::vector<std::pair<double, double>> values, double fraction);

// Percentiles of residuals of left-out sources, each divided by its width_of() among the other
// sources; a source counts as the power 0.9 of its runs, so that a grid of plans does not decide
// alone. Two sources' worth of the default band (dense models) or of that of dense models (experts)
// is mixed in, and the band is stretched until it holds 90 % when each source in turn is left out
// of it too. A lineage of stacks that eight sources ran has a band of its own, with two sources'
// worth of its kind's. Empty without a left-out residual.
std::optional<costmodel::ResidualTable> fit_residuals(const RefitResult& fitted,
                                                      double pair_spread);

}  // namespace planner
