#include "planner/commands/sweep_axes.hpp"

#include <algorithm>
#include <array>

#include "costmodel/base/error.hpp"
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
    points *= axes.back().values.size();
    if (points > 1'000'000) {
      throw ConfigError({"--over", 0, 0}, "asks for more than a million points",
                        "sweep fewer values");
    }
  }
  if (axes.empty())
    throw ConfigError({}, "shardplan: 'sweep' has nothing to vary", "add --over tp=1,2,4,8");
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

}  // namespace planner
