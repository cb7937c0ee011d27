#include "calibrate/fit/fit_device.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "costmodel/cost/device_time.hpp"

namespace calibrate {

using costmodel::Bytes;
using costmodel::DeviceSpec;
using costmodel::Pass;
using costmodel::Precision;
using costmodel::Seconds;

namespace {

template <class What>
std::vector<Measurement> points_of(const std::vector<Measurement>& all) {
  std::vector<Measurement> points;
  for (const auto& m : all)
    if (std::holds_alternative<What>(m.what)) points.push_back(m);
  return points;
}

FitTask copies(const DeviceSpec& base, const std::vector<Measurement>& all) {
  FitTask task;
  task.what = "copies in device memory";
  task.knobs = {{"memory_efficiency.large", base.memory_efficiency, 1e-3, 1, true},
                {"memory_efficiency.half_bytes", base.memory_half.value, 0, 1e9}};
  task.points = points_of<Copy>(all);
  task.model = [base](const std::vector<double>& values, const Measurement& m) {
    DeviceSpec device = base;
    device.memory_efficiency = values[0];
    device.memory_half = Bytes(values[1]);
    return costmodel::streaming_time(std::get<Copy>(m.what).moved, 1, device);
  };
  return task;
}

FitTask products(const DeviceSpec& base, const std::vector<Measurement>& all, Precision precision) {
  FitTask task;
  task.what = fmt::format("{} products", to_string(precision));
  const auto at = static_cast<std::size_t>(precision);
  const bool own = base.gemm_precision_efficiency[at] > 0;
  const std::string name =
      own ? fmt::format("gemm.precision_efficiency.{}", to_string(precision)) : "gemm.efficiency";
  task.knobs = {{name, base.gemm_efficiency_of(precision), 1e-3, 1, true},
                {"gemm.half_k", base.gemm_half_k, 0, 1e5}};
  for (const auto& m : points_of<Product>(all))
    if (std::get<Product>(m.what).precision == precision) task.points.push_back(m);
  task.model = [base, at, own](const std::vector<double>& values, const Measurement& m) {
    DeviceSpec device = base;
    (own ? device.gemm_precision_efficiency[at] : device.gemm_efficiency) = values[0];
    device.gemm_half_k = values[1];
    const auto& p = std::get<Product>(m.what);
    return costmodel::product_time(p.batch, p.m, p.n, p.k, device, p.precision);
  };
  return task;
}

Seconds attention_time(const AttentionRun& kernel, const DeviceSpec& device) {
  Seconds time;
  if (kernel.passes != AttentionRun::Passes::backward)
    time += costmodel::device_time(kernel.op, Pass::forward, device, kernel.precision);
  if (kernel.passes != AttentionRun::Passes::forward)
    time += costmodel::device_time(kernel.op, Pass::input_gradient, device, kernel.precision);
  return time;
}

FitTask attention(const DeviceSpec& base, const std::vector<Measurement>& all, bool separate) {
  FitTask task;
  task.what = "attention";
  task.knobs = {{"attention.forward_efficiency", base.attention_forward, 1e-3, 1, true},
                {"attention.backward_efficiency", base.attention_backward, 1e-3, 1, true},
                {"attention.half_sequence", base.attention_half_sequence, 0, 1e5},
                {"attention.flash2_forward_efficiency", base.attention2_forward, 1e-3, 1, true},
                {"attention.flash2_backward_efficiency", base.attention2_backward, 1e-3, 1, true}};
  task.points = points_of<AttentionRun>(all);
  const auto generation = [](Measurement& m) -> bool& {
    return std::get<AttentionRun>(m.what).op.second_generation;
  };
  const bool better = std::any_of(task.points.begin(), task.points.end(),
                                  [&](Measurement& m) { return !generation(m); });
  for (auto& m : task.points) generation(m) = generation(m) && (separate || better);
  for (const bool second : {false, true}) {  // forward and backward together determine one constant
    const auto shows = [&](Measurement& m, bool both) {
      const auto passes = std::get<AttentionRun>(m.what).passes;
      return generation(m) == second && (passes == AttentionRun::Passes::both) == both;
    };
    const auto any = [&](bool both) {
      return std::any_of(task.points.begin(), task.points.end(),
                         [&](Measurement& m) { return shows(m, both); });
    };
    const std::size_t forward = second ? 3 : 0;
    if (any(true) && !any(false)) task.knobs[forward].follows = forward + 1;
  }
  task.model = [base](const std::vector<double>& values, const Measurement& m) {
    DeviceSpec device = base;
    device.attention_forward = values[0];
    device.attention_backward = values[1];
    device.attention_half_sequence = values[2];
    device.attention2_forward = values[3];
    device.attention2_backward = values[4];
    return attention_time(std::get<AttentionRun>(m.what), device);
  };
  return task;
}

Precision precision_of(const Measurement& m) {
  if (const auto* p = std::get_if<Product>(&m.what)) return p->precision;
  if (const auto* a = std::get_if<AttentionRun>(&m.what)) return a->precision;
  return Precision::bf16;
}

}  // namespace

std::vector<FittedGroup> fit_device(const DeviceSpec& base,
                                    const std::vector<Measurement>& measurements,
                                    bool separate_flash2, std::vector<Unused>& unused) {
  std::vector<Measurement> priced;
  for (const auto& m : measurements) {
    const Precision p = precision_of(m);
    const bool in_8_bits = p != Precision::fp32 && p != Precision::fp16 && p != Precision::bf16;
    if (base.peak_of(p).value <= 0 && !std::holds_alternative<Copy>(m.what)) {
      unused.push_back({m.id, fmt::format("the device has no {} rate", to_string(p))});
    } else if (in_8_bits && std::holds_alternative<AttentionRun>(m.what)) {
      unused.push_back({m.id, "attention below 16 bits is not priced"});
    } else {
      priced.push_back(m);
    }
  }
  std::vector<FittedGroup> groups;
  const auto add = [&](const FitTask& task) {
    if (!task.points.empty()) groups.push_back(fit(task));
  };
  DeviceSpec device = base;
  add(copies(device, priced));
  if (!groups.empty()) {
    device.memory_efficiency = groups.front().constants[0].after;
    device.memory_half = Bytes(groups.front().constants[1].after);
  }
  std::vector<FitTask> by_precision;
  for (std::size_t p = 0; p < costmodel::precision_count; ++p)
    by_precision.push_back(products(device, priced, static_cast<Precision>(p)));
  std::stable_sort(by_precision.begin(), by_precision.end(),
                   [](const auto& a, const auto& b) { return a.points.size() > b.points.size(); });
  for (const auto& task : by_precision) add(task);
  add(attention(device, priced, separate_flash2));
  return groups;
}

}  // namespace calibrate
