// `sweep --weak`: the batch grows with the devices.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "costmodel/config/value.hpp"
#include "planner/commands/sweep_axes.hpp"

namespace planner {

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
