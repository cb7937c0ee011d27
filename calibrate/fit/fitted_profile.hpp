// A fitted profile: the base's own YAML with the fitted constants, their source rewritten, and
// under `fit` what every constant rests on.
#pragma once

#include <string>
#include <vector>

#include "calibrate/fit/fit.hpp"
#include "costmodel/config/value.hpp"

namespace calibrate {

// `base` is a device's or a cluster's map; constants are named by their path ("gemm.half_k",
// "tiers.nvlink.latency_s"). Where several groups fit the same constant (products of several
// precisions) the first one's value is taken, as the formulas have one.
costmodel::Value fitted_profile(const costmodel::Value& base, const std::string& base_name,
                                const std::vector<FittedGroup>& groups);

// A table of the constants: before, after, points, errors.
std::string fit_report(const std::vector<FittedGroup>& groups, const std::vector<Unused>& unused);

}  // namespace calibrate
