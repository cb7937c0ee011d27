#include "costmodel/machine/rate_table_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace costmodel {

namespace {

constexpr double most_size = 1e18, most_rate = 1e20;

std::vector<double> read_numbers(MapReader& reader, std::string_view key, double most) {
  const Value& list = reader.required(key);
  if (list.kind != Value::Kind::sequence || list.items.empty())
    throw ConfigError(list.mark, fmt::format("{} is not a list", key), "write [a, b, ...]");
  std::vector<double> numbers;
  for (const Value& item : list.items)
    numbers.push_back(read_number(item, std::string(key), Dimension::count, 1, most));
  return numbers;
}

std::vector<double> read_axis(MapReader& reader, std::string_view key) {
  std::vector<double> axis = read_numbers(reader, key, most_size);
  const auto falls = std::ranges::adjacent_find(axis, std::ranges::greater_equal());
  if (falls == axis.end()) return axis;
  const auto next = static_cast<std::size_t>(falls - axis.begin()) + 1;
  throw ConfigError(reader.required(key).items[next].mark, fmt::format("{} does not grow", key),
                    "list smaller sizes first");
}

std::vector<double> read_rates(MapReader& reader, std::string_view key, std::size_t count) {
  std::vector<double> rates = read_numbers(reader, key, most_rate);
  if (rates.size() == count) return rates;
  throw ConfigError(reader.required(key).mark,
                    fmt::format("{} has {} values, the axes {} points", key, rates.size(), count),
                    "give one a point, the first axis slowest");
}

std::vector<std::string_view> sizes_of(const TableKeys& keys) {
  std::vector<std::string_view> sizes = keys.axes;
  sizes.insert(sizes.end(), keys.more.begin(), keys.more.end());
  return sizes;
}

// A list a size and one of the rates, in which each shape has its place.
std::vector<MeasuredShape> read_shapes(const Value& map, const TableKeys& keys) {
  MapReader reader(map, "shapes");
  std::vector<MeasuredShape> shapes(read_numbers(reader, keys.rate, most_rate).size());
  const auto column = [&](std::string_view key, double most) {
    auto numbers = read_numbers(reader, key, most);
    if (numbers.size() == shapes.size()) return numbers;
    throw ConfigError(
        reader.required(key).mark,
        fmt::format("{} has {} values, {} has {}", key, numbers.size(), keys.rate, shapes.size()),
        "give one a shape");
  };
  for (const auto key : sizes_of(keys)) {
    const auto numbers = column(key, most_size);
    for (std::size_t i = 0; i < shapes.size(); ++i) shapes[i].sizes.push_back(numbers[i]);
  }
  const auto rates = column(keys.rate, most_rate);
  for (std::size_t i = 0; i < shapes.size(); ++i) shapes[i].rate = rates[i];
  reader.finish();
  std::ranges::sort(shapes, {}, &MeasuredShape::sizes);
  if (std::ranges::adjacent_find(shapes, {}, &MeasuredShape::sizes) != shapes.end())
    throw ConfigError(map.mark, "shapes has one twice", "keep one of the two");
  return shapes;
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
  if (const Value* shapes = reader.optional("shapes")) table.shapes = read_shapes(*shapes, keys);
  const bool grid = table.shapes.empty() || reader.optional(keys.rate) != nullptr;
  std::size_t count = 1;
  for (std::size_t i = 0; grid && i < keys.axes.size(); ++i) {
    table.axes.push_back(read_axis(reader, keys.axes[i]));
    count *= table.axes.back().size();
  }
  if (grid) table.rates = read_rates(reader, keys.rate, count);
  reader.finish();
  return table;
}

void add(Value& list, std::string number) {
  list.kind = Value::Kind::sequence;
  list.items.push_back(scalar_value(std::move(number)));
}

Value listed(const std::vector<double>& numbers) {
  Value list;
  for (const double number : numbers) add(list, fmt::format("{:.6g}", number));
  return list;
}

}  // namespace

Value shapes_value(const RateTable& table) {
  const TableKeys keys = keys_of(table.op);
  const auto sizes = sizes_of(keys);
  std::vector<Value> columns(sizes.size() + 1);
  for (const MeasuredShape& shape : table.shapes) {
    // A size has to be found again, so it has all its digits.
    for (std::size_t i = 0; i < sizes.size(); ++i)
      add(columns[i], fmt::format("{}", shape.sizes[i]));
    add(columns.back(), fmt::format("{:.6g}", shape.rate));
  }
  Value map;
  for (std::size_t i = 0; i < sizes.size(); ++i) map.set(std::string(sizes[i]), columns[i]);
  map.set(std::string(keys.rate), columns.back());
  return map;
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
    for (std::size_t i = 0; i < table.axes.size(); ++i)
      map.set(std::string(keys.axes[i]), listed(table.axes[i]));
    if (!table.rates.empty()) map.set(std::string(keys.rate), listed(table.rates));
    if (!table.shapes.empty()) map.set("shapes", shapes_value(table));
    list.items.push_back(std::move(map));
  }
  return list;
}

}  // namespace costmodel
