// Writes a fitted profile: the base's own YAML with the fitted constants, new sources and, under
// `fit`, the evidence for every constant.
#pragma once

#include <string>
#include <vector>

#include "calibrate/fit/fit.hpp"
#include "costmodel/config/value.hpp"

namespace calibrate {

// `base`: the map of a device or a cluster. Constants are named by their path ("gemm.half_k",
// "tiers.nvlink.latency_s"). When several groups fit one constant (products of several precisions),
// the first group's value is taken, because the formulas have only one.
costmodel::Value fitted_profile(const costmodel::Value& base, const std::string& base_name,
                                const std::vector<FittedGroup>& groups);

// A table of the kinds of measurements, a line each: how far the formulas are from them before and
// after the fit, and on which side before.
std::string comparison_head();
std::string comparison(const std::string& name, const std::vector<FittedGroup>& groups);

// A table of the constants: before, after, points, errors.
std::string fit_report(const std::vector<FittedGroup>& groups, const std::vector<Unused>& unused);

}  // namespace calibrate
