#include "calibrate/profile/measured_shapes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "calibrate/profile/measured_tables.hpp"
#include "costmodel/cost/measured_time.hpp"
#include "costmodel/machine/rate_table_reader.hpp"

namespace calibrate {

using namespace costmodel;

namespace {

constexpr std::string_view at_its_shape = " at its shape";

// In which the operator computes, in a training in `training`.
Precision computed_in(const Op& op, Precision training) {
  const auto* product = std::get_if<Linear>(&op);
  return product != nullptr ? precision_of(*product, training) : training;
}

// The table that prices it; a new one where there is none.
RateTable& table_in(DeviceSpec& device, MeasuredOp op, Pass pass, Precision precision) {
  if (const RateTable* table = table_of(op, pass, device, precision))
    return device.measured[static_cast<std::size_t>(table - device.measured.data())];
  RateTable& table = device.measured.emplace_back();
  table.op = op;
  table.pass = pass;
  table.precision = precision;
  return table;
}

void set_rate(RateTable& table, const std::vector<double>& sizes, double rate) {
  const auto at = std::ranges::lower_bound(table.shapes, sizes, {}, &MeasuredShape::sizes);
  if (at != table.shapes.end() && at->sizes == sizes) {
    at->rate = rate;
  } else {
    table.shapes.insert(at, {sizes, rate});
  }
}

}  // namespace

bool lacks_shape(const DeviceSpec& device, const Op& op, Pass pass, Precision precision) {
  const auto measured = measured_op(op);
  if (!measured || !has_pass(op, pass)) return false;
  precision = computed_in(op, precision);
  const RateTable* table = table_of(*measured, pass, device, precision);
  return table == nullptr || !has_shape(*table, measured_work(op, pass, precision).sizes());
}

std::string shape_text(const Op& op, Precision precision) {
  const MeasuredOp measured = *measured_op(op);
  const TableKeys keys = keys_of(measured);
  const auto sizes = measured_work(op, Pass::forward, precision).sizes();
  std::string text(name_of(measured));
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const auto key = i < keys.axes.size() ? keys.axes[i] : keys.more[i - keys.axes.size()];
    text += fmt::format("{} {} {}", i == 0 ? "" : ",", key, sizes[i]);
  }
  return text;
}

void add_lacking(const DeviceSpec& device, Precision precision, LayerKind kind, const OpList& list,
                 std::vector<LackingShape>& all) {
  const auto same = [&](const LackingShape& a, const Op& op, Pass pass) {
    return a.pass == pass && shape_text(a.op, precision) == shape_text(op, precision);
  };
  for (std::size_t i = 0; i < list.nodes.size(); ++i) {
    for (const Pass pass : {Pass::forward, Pass::input_gradient, Pass::weight_gradient}) {
      const Op& op = list.nodes[i].op;
      if (!lacks_shape(device, op, pass, precision)) continue;
      if (std::ranges::none_of(all, [&](const auto& other) { return same(other, op, pass); }))
        all.push_back({kind, i, op, pass});
    }
  }
}

std::string lacking_text(const std::vector<LackingShape>& lacking, Precision precision,
                         const std::string& profile, const std::string& scenario) {
  std::vector<std::pair<std::string, std::string>> lines;
  for (const LackingShape& one : lacking) {
    const std::string shape = shape_text(one.op, precision);
    const auto pass = pass_names[static_cast<std::size_t>(one.pass)];
    const auto line = std::ranges::find(lines, shape, &std::pair<std::string, std::string>::first);
    if (line == lines.end()) {
      lines.emplace_back(shape, pass);
    } else {
      line->second += fmt::format(", {}", pass);
    }
  }
  if (lines.empty()) return fmt::format("{} has every shape of {}\n", profile, scenario);
  std::string text = fmt::format("{} lacks {} shape{} of {}\n", profile, lines.size(),
                                 lines.size() == 1 ? "" : "s", scenario);
  for (const auto& [shape, passes] : lines) text += fmt::format("  {}: {}\n", shape, passes);
  return text;
}

Record shape_record(const std::string& task, const Op& op, Pass pass, const Timing& time,
                    const DeviceSpec& device, Precision precision) {
  precision = computed_in(op, precision);
  const auto work = measured_work(op, pass, precision);
  const std::string name = std::string(measured_name(op)) + std::string(at_its_shape);
  Record record{task, in_precision(name, precision), pass, work.sizes(), work.amount, time};
  // However dear the tables have the bias, half of what was measured is the product's.
  const Seconds bias = measured_bias(op, pass, device, precision);
  for (Seconds* one : {&record.time.median, &record.time.least})
    *one = max(*one - bias, *one * 0.5);
  return record;
}

void add_shapes(Value& profile, const std::vector<Record>& records) {
  std::map<std::tuple<std::string, Pass, std::vector<double>>, std::vector<double>> rates;
  for (const Record& r : records)
    rates[{r.op, r.pass, r.point}].push_back(r.amount / r.time.median.value);
  Value& list = *profile.find("operators")->find("tables");
  DeviceSpec device;
  device.measured = read_rate_tables(list);
  for (std::size_t i = 0; i < measured_names().size(); ++i) {
    const std::string name = std::string(measured_names()[i]) + std::string(at_its_shape);
    for (std::size_t p = 0; p < precision_count; ++p) {
      const auto precision = static_cast<Precision>(p);
      for (const auto& [key, values] : rates) {
        const auto& [op, pass, sizes] = key;
        if (op != in_precision(name, precision)) continue;
        set_rate(table_in(device, static_cast<MeasuredOp>(i), pass, precision), sizes,
                 median_rate(values));
      }
    }
  }
  // The grids stay as they are written.
  for (std::size_t i = 0; i < device.measured.size(); ++i) {
    const RateTable& table = device.measured[i];
    if (i >= list.items.size()) {
      list.items.push_back(to_value({table}).items.front());
    } else if (!table.shapes.empty()) {
      list.items[i].set("shapes", shapes_value(table));
    }
  }
}

}  // namespace calibrate
