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
#include "costmodel/base/units.hpp"
#include "costmodel/config/map_reader.hpp"
#include "costmodel/config/value.hpp"

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

// Axes and the rate's key of an operator's table: {"m", "n", "k"} and flops_per_s of "linear".
struct TableKeys {
  std::vector<std::string_view> axes;
  std::string_view rate;
};
TableKeys keys_of(std::string_view op);

// Reads the list under `operators: {tables: ...}`. Throws ConfigError: an unknown operator or key,
// axes that do not grow, too few or too many rates, a table twice.
std::vector<RateTable> read_rate_tables(const Value& list);
Value to_value(const std::vector<RateTable>& tables);

// A table of one axis that is part of a larger map: two lists of the same length under these keys.
RateTable read_curve(MapReader& reader, std::string_view axis, std::string_view rate);
void set_curve(Value& map, const RateTable& curve, std::string_view axis, std::string_view rate);

}  // namespace costmodel
