#include "costmodel/machine/rate_table_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace costmodel {

namespace {

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
  table.op = static_cast<MeasuredOp>(*reader.one_of("op", measured_names()));
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

std::vector<RateTable> read_rate_tables(const Value& list) {
  if (list.kind != Value::Kind::sequence)
    throw ConfigError(list.mark, "tables is not a list", "write a list of {op, pass, ...}");
  std::vector<RateTable> tables;
  for (const Value& item : list.items) {
    RateTable table = read_rate_table(item);
    const bool twice = std::ranges::any_of(tables, [&](const RateTable& other) {
      return other.op == table.op && other.pass == table.pass && other.precision == table.precision;
    });
    if (twice) {
      throw ConfigError(item.mark,
                        fmt::format("{} has two tables for {}", name_of(table.op),
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
    map.set("op", scalar_value(std::string(name_of(table.op))));
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
