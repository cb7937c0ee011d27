#include "planner/commands/weak_scaling.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "costmodel/base/error.hpp"
#include "costmodel/base/escape.hpp"
#include "costmodel/base/unit_text.hpp"
#include "costmodel/config/override.hpp"

namespace planner {

using namespace costmodel;

constexpr std::string_view batch_path = "training.global_batch";

bool has_axis(const std::vector<Axis>& axes, std::string_view path) {
  return std::ranges::find(axes, path, &Axis::path) != axes.end();
}

WeakScaling::WeakScaling(const std::vector<Axis>& axes, const Value& scenario) {
  const auto devices = std::ranges::find(axes, devices_path, &Axis::path);
  if (devices == axes.end()) {
    throw ConfigError({}, "shardplan: --weak lets the batch grow with the devices",
                      "add --over cluster.devices=8,16,32");
  }
  if (has_axis(axes, batch_path)) {
    throw ConfigError({}, "shardplan: --weak sets training.global_batch, which is swept",
                      "leave one of them out");
  }
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
