// The keys that a sweep varies, and their values.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "costmodel/config/value.hpp"
#include "planner/commands/options.hpp"

namespace planner {

// "tp=1,2,4" -> key path "plan.tp" and its values. A key without a dot is a key of the plan, or
// `model` or `cluster`.
struct Axis {
  std::string path;
  std::vector<std::string> values;
};
Axis parse_axis(const std::string& over);

// The axes of `--over`. Throws ConfigError for none, or too many points.
std::vector<Axis> axes_of(const Options& options);
// Sets the axes to the values of a point; the last axis varies fastest. Returns the values.
std::vector<std::string> place(const std::vector<Axis>& axes, std::size_t point,
                               costmodel::Value& value);

}  // namespace planner
