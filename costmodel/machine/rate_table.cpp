#include "costmodel/machine/rate_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "costmodel/base/error.hpp"
#include "costmodel/config/map_reader.hpp"
#include "costmodel/cost/measured_time.hpp"

namespace costmodel {

namespace {

constexpr std::size_t most_axes = 3;

// Where a coordinate lies: between points `low` and `low + 1` of the axis, `share` of the way.
struct Between {
  std::size_t low = 0;
  double share = 0;
};

Between place_on(const std::vector<double>& axis, double x) {
  if (axis.size() == 1 || x <= axis.front()) return {};
  if (x >= axis.back()) return {axis.size() - 2, 1};
  const auto above = std::upper_bound(axis.begin(), axis.end(), x);
  const auto low = static_cast<std::size_t>(above - axis.begin()) - 1;
  return {low, std::log(x / axis[low]) / std::log(axis[low + 1] / axis[low])};
}

std::vector<double> read_axis(MapReader& reader, std::string_view key) {
  const Value& list = reader.required(key);
  if (list.kind != Value::Kind::sequence || list.items.empty())
    throw ConfigError(list.mark, fmt::format("{} is not a list", key), "write [a, b, ...]");
  std::vector<double> axis;
  for (const Value& item : list.items) {
    axis.push_back(read_number(item, std::string(key), Dimension::count, 1, 1e18));
    if (axis.size() > 1 && axis.back() <= axis[axis.size() - 2]) {
      throw ConfigError(item.mark, fmt::format("{} does not grow", key),
                        "list smaller sizes first");
    }
  }
  return axis;
}

std::vector<double> read_rates(MapReader& reader, std::string_view key, std::size_t count) {
  const Value& list = reader.required(key);
  if (list.kind != Value::Kind::sequence || list.items.size() != count) {
    throw ConfigError(
        list.mark,
        fmt::format("{} has {} values, the axes {} points", key, list.items.size(), count),
        "give one a point, the first axis slowest");
  }
  std::vector<double> rates;
  for (const Value& item : list.items)
    rates.push_back(read_number(item, std::string(key), Dimension::count, 1, 1e20));
  return rates;
}

RateTable read_rate_table(const Value& map) {
  MapReader reader(map, "measured operator");
  RateTable table;
  reader.required("op");
  table.op = std::string(measured_names()[*reader.one_of("op", measured_names())]);
  reader.required("pass");
  table.pass = static_cast<Pass>(*reader.one_of("pass", pass_names));
  reader.required("precision");
  table.precision = static_cast<Precision>(*reader.one_of("precision", precision_names));
  const TableKeys keys = keys_of(table.op);
  std::size_t count = 1;
  for (const auto key : keys.axes) {
    table.axes.push_back(read_axis(reader, key));
    count *= table.axes.back().size();
  }
  table.rates = read_rates(reader, keys.rate, count);
  reader.finish();
  return table;
}

Value listed(const std::vector<double>& numbers) {
  Value list;
  list.kind = Value::Kind::sequence;
  for (const double number : numbers)
    list.items.push_back(scalar_value(fmt::format("{:.6g}", number)));
  return list;
}

}  // namespace

double rate_at(const RateTable& table, std::span<const double> point) {
  const std::size_t n = table.axes.size();
  SHARDPLAN_CHECK(point.size() == n && n <= most_axes);
  std::array<Between, most_axes> at{};
  for (std::size_t i = 0; i < n; ++i) at[i] = place_on(table.axes[i], point[i]);
  double logarithm = 0;
  for (std::size_t corner = 0; corner < (std::size_t{1} << n); ++corner) {
    double weight = 1;
    std::size_t index = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const bool high = (corner >> i & 1U) != 0;
      weight *= high ? at[i].share : 1 - at[i].share;
      index = index * table.axes[i].size() + at[i].low + (high && at[i].share > 0 ? 1 : 0);
    }
    if (weight > 0) logarithm += weight * std::log(table.rates[index]);
  }
  return std::exp(logarithm);
}

RateTable read_curve(MapReader& reader, std::string_view axis, std::string_view rate) {
  RateTable curve;
  curve.axes = {read_axis(reader, axis)};
  curve.rates = read_rates(reader, rate, curve.axes.front().size());
  return curve;
}

void set_curve(Value& map, const RateTable& curve, std::string_view axis, std::string_view rate) {
  map.set(std::string(axis), listed(curve.axes.front()));
  map.set(std::string(rate), listed(curve.rates));
}

TableKeys keys_of(std::string_view op) {
  if (op == "linear") return {{"m", "n", "k"}, "flops_per_s"};
  if (op == "flash attention" || op == "attention scores" || op == "attention context")
    return {{"sequence", "head_dim"}, "flops_per_s"};
  return {{"bytes"}, "bytes_per_s"};
}

std::vector<RateTable> read_rate_tables(const Value& list) {
  if (list.kind != Value::Kind::sequence)
    throw ConfigError(list.mark, "tables is not a list", "write a list of {op, pass, ...}");
  std::vector<RateTable> tables;
  for (const Value& item : list.items) {
    RateTable table = read_rate_table(item);
    const bool twice = std::any_of(tables.begin(), tables.end(), [&](const RateTable& other) {
      return other.op == table.op && other.pass == table.pass && other.precision == table.precision;
    });
    if (twice) {
      throw ConfigError(item.mark,
                        fmt::format("{} has two tables for {}", table.op,
                                    pass_names[static_cast<std::size_t>(table.pass)]),
                        "keep one of them");
    }
    tables.push_back(std::move(table));
  }
  return tables;
}

Value to_value(const std::vector<RateTable>& tables) {
  Value list;
  list.kind = Value::Kind::sequence;
  for (const RateTable& table : tables) {
    Value map;
    map.set("op", scalar_value(table.op));
    map.set("pass", scalar_value(std::string(pass_names[static_cast<std::size_t>(table.pass)])));
    map.set("precision", scalar_value(std::string(to_string(table.precision))));
    const TableKeys keys = keys_of(table.op);
    for (std::size_t i = 0; i < keys.axes.size(); ++i)
      map.set(std::string(keys.axes[i]), listed(table.axes[i]));
    map.set(std::string(keys.rate), listed(table.rates));
    list.items.push_back(std::move(map));
  }
  return list;
}

}  // namespace costmodel
