// Rates of operators as they were measured, over a grid of shapes.
//
// Between the points the logarithm of the rate is linear in the logarithm of each coordinate: exact
// at the points, between the rates of the corners elsewhere. Outside the grid the rate is that of
// its nearest edge, so that time grows with the work.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "costmodel/base/pass.hpp"
#include "costmodel/base/precision.hpp"

namespace costmodel {

// One pass of one operator in one precision. What the axes and the rate count depends on the
// operator (measured_time.hpp).
struct RateTable {
  std::string op;
  Pass pass = Pass::forward;
  Precision precision = Precision::fp32;
  std::vector<std::vector<double>> axes;  // three at most, each growing, all positive
  std::vector<double> rates;              // a second; the first axis is the slowest
};

// `point` has one positive coordinate an axis.
double rate_at(const RateTable& table, std::span<const double> point);

// Every name a table may have: an operator's, as costmodel/cost/measured_time.hpp names it, or
// "optimizer".
std::span<const std::string_view> measured_names();

// Axes and the rate's key of an operator's table: {"m", "n", "k"} and flops_per_s of "linear".
struct TableKeys {
  std::vector<std::string_view> axes;
  std::string_view rate;
};
TableKeys keys_of(std::string_view op);

}  // namespace costmodel
