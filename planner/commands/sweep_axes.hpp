// The keys that a sweep varies, and their values; with `--weak` a batch that grows with the
// devices.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
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

inline constexpr std::string_view devices_path = "cluster.devices";

// Whether the axes sweep that key.
bool has_axis(const std::vector<Axis>& axes, std::string_view path);

// The batch of the scenario belongs to the first number of devices swept; that of the others is in
// proportion, so that each has the same work on a device.
class WeakScaling {
 public:
  // Throws ConfigError where devices are not swept, or the batch is.
  WeakScaling(const std::vector<Axis>& axes, const costmodel::Value& scenario);

  // Sets the batch of a point: `values` are its axes', `scenario` has them already. Throws
  // ConfigError where it is no whole number. What cannot be read is left to the scenario's reader.
  void place(const std::vector<std::string>& values, costmodel::Value& scenario) const;

 private:
  std::optional<double> batch_, first_;
  std::ptrdiff_t at_ = 0;  // of the devices among the axes
};

}  // namespace planner
