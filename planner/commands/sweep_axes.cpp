#include "planner/commands/sweep_axes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "costmodel/base/error.hpp"
#include "costmodel/base/escape.hpp"
#include "costmodel/base/unit_text.hpp"
#include "costmodel/config/override.hpp"

namespace planner {

using namespace costmodel;

namespace {

// Apart at commas that stand in no bracket.
std::vector<std::string> split_values(const std::string& text) {
  std::vector<std::string> values(1);
  int depth = 0;
  for (const char c : text) {
    if (c == '[' || c == '{') ++depth;
    if (c == ']' || c == '}') --depth;
    if (c == ',' && depth == 0) {
      values.emplace_back();
    } else {
      values.back() += c;
    }
  }
  return values;
}

}  // namespace

Axis parse_axis(const std::string& over) {
  const auto equals = over.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == over.size()) {
    throw ConfigError(mark_of_argument("--over", over), "is not KEY=A,B,...",
                      "example: --over tp=1,2,4,8");
  }
  Axis axis;
  axis.path = over.substr(0, equals);
  constexpr std::array maps{"model", "cluster", "training", "plan"};
  const bool whole = std::ranges::count(maps, axis.path) > 0;
  if (!whole && axis.path.find('.') == std::string::npos) axis.path = "plan." + axis.path;
  axis.values = split_values(over.substr(equals + 1));
  const bool one_list =
      axis.values.size() == 1 && axis.values[0].starts_with('[') && axis.values[0].ends_with(']');
  if (one_list) axis.values = split_values(axis.values[0].substr(1, axis.values[0].size() - 2));
  for (const auto& value : axis.values) {
    if (value.find_first_not_of(' ') != std::string::npos) continue;
    throw ConfigError(mark_of_argument("--over", over), "has an empty value",
                      "example: --over tp=1,2,4,8");
  }
  return axis;
}

std::vector<Axis> axes_of(const Options& options) {
  std::vector<Axis> axes;
  std::size_t points = 1;
  for (const auto& over : options.over) {
    axes.push_back(parse_axis(over));
    if (std::ranges::count(axes, axes.back().path, &Axis::path) > 1) {
      throw ConfigError(mark_of_argument("--over", over), "varies a key that another --over varies",
                        "write all of its values in one: --over tp=1,2,4,8");
    }
    points *= axes.back().values.size();
    if (points > 1'000'000) {
      throw ConfigError({"--over", 0, 0}, "asks for more than a million points",
                        "sweep fewer values");
    }
  }
  refuse_if(axes.empty(), "'sweep' has nothing to vary", "add --over tp=1,2,4,8");
  return axes;
}

std::vector<std::string> place(const std::vector<Axis>& axes, std::size_t point, Value& value) {
  std::size_t stride = 1;
  for (const Axis& axis : axes) stride *= axis.values.size();
  std::vector<std::string> row;
  for (const Axis& axis : axes) {
    stride /= axis.values.size();
    const std::string& chosen = axis.values[point / stride];
    point %= stride;
    assign_path(value, axis.path + "=" + chosen, mark_of_argument("--over", axis.path));
    row.push_back(chosen);
  }
  return row;
}

constexpr std::string_view batch_path = "training.global_batch";

bool has_axis(const std::vector<Axis>& axes, std::string_view path) {
  return std::ranges::find(axes, path, &Axis::path) != axes.end();
}

WeakScaling::WeakScaling(const std::vector<Axis>& axes, const Value& scenario) {
  const auto devices = std::ranges::find(axes, devices_path, &Axis::path);
  refuse_if(devices == axes.end(), "--weak lets the batch grow with the devices",
            "add --over cluster.devices=8,16,32");
  refuse_if(has_axis(axes, batch_path), "--weak sets training.global_batch, which is swept",
            "leave one of them out");
  const Value* training = scenario.find("training");
  const Value* batch = training == nullptr ? nullptr : training->find("global_batch");
  batch_ = batch == nullptr ? std::nullopt : parse_count(batch->text);
  first_ = parse_count(devices->values.front());
  at_ = devices - axes.begin();
}

void WeakScaling::place(const std::vector<std::string>& values, Value& scenario) const {
  const std::string& written = values[static_cast<std::size_t>(at_)];
  const auto devices = parse_count(written);
  if (!batch_ || !first_ || !devices || !(*first_ > 0)) return;
  const double batch = *batch_ * *devices / *first_;
  if (batch != std::floor(batch) || batch < 1) {
    throw ConfigError(
        mark_of_argument("--weak", written),
        fmt::format("the batch would be {:g} sequences on {} devices", batch, shortened(written)),
        "begin with a number of devices that divides the batch and the others");
  }
  assign_path(scenario, fmt::format("{}={:.0f}", batch_path, batch),
              mark_of_argument("--weak", written));
}

}  // namespace planner
