#include "calibrate/fit/fit_device.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "costmodel/cost/device_time.hpp"

namespace calibrate {

using namespace costmodel;

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
    return streaming_time(std::get<Copy>(m.what).moved, 1, device);
  };
  return task;
}

enum class ProductKind { plain, with_casts, grouped };

ProductKind kind_of(const Product& p) {
  return p.grouped ? ProductKind::grouped : p.casts ? ProductKind::with_casts : ProductKind::plain;
}

std::int64_t whole(double size) { return static_cast<std::int64_t>(size); }

Seconds trained_time(const Product& p, const DeviceSpec& device, Seconds start) {
  const GroupedLinear layer{whole(p.m * p.batch), whole(p.n), whole(p.k),
                            whole(p.batch),       false,      start};
  Seconds time;
  for (const auto pass : {Pass::forward, Pass::input_gradient, Pass::weight_gradient})
    time += device_time(layer, pass, device, p.precision);
  return time;
}

Seconds time_of(const Product& p, const DeviceSpec& device, Seconds start) {
  if (p.trained) return trained_time(p, device, start);
  if (p.casts) {
    const Linear linear{whole(p.m), whole(p.n), whole(p.k), false, false};
    return device_time(linear, Pass::forward, device, p.precision);
  }
  return (p.grouped ? p.batch * start : Seconds(0)) +
         product_time(p.batch, p.m, p.n, p.k, device, p.precision);
}

// Plain products decide the device's constants. Casts and groups show how well these carry over.
FitTask products(const DeviceSpec& base, const std::vector<Measurement>& all, Precision precision,
                 ProductKind kind, Seconds start) {
  constexpr std::array names{"{} products", "{} products with their casts",
                             "{} products in groups"};
  FitTask task;
  task.what =
      fmt::format(fmt::runtime(names[static_cast<std::size_t>(kind)]), to_string(precision));
  const auto at = static_cast<std::size_t>(precision);
  const bool own = base.gemm_precision_efficiency[at] > 0;
  const std::string name =
      own ? fmt::format("gemm.precision_efficiency.{}", to_string(precision)) : "gemm.efficiency";
  const bool plain = kind == ProductKind::plain;
  task.knobs = {{name, base.gemm_efficiency_of(precision), 1e-3, 1, true, {}, plain},
                {"gemm.half_k", base.gemm_half_k, 0, 1e5, false, {}, plain}};
  for (const auto& m : points_of<Product>(all)) {
    const auto& p = std::get<Product>(m.what);
    if (p.precision == precision && kind_of(p) == kind) task.points.push_back(m);
  }
  task.model = [base, at, own, start](const std::vector<double>& values, const Measurement& m) {
    DeviceSpec device = base;
    (own ? device.gemm_precision_efficiency[at] : device.gemm_efficiency) = values[0];
    device.gemm_half_k = values[1];
    return time_of(std::get<Product>(m.what), device, start);
  };
  return task;
}

std::vector<FitTask> all_products(const DeviceSpec& base, const std::vector<Measurement>& all,
                                  Seconds start) {
  std::vector<FitTask> tasks;
  for (const auto kind : {ProductKind::plain, ProductKind::with_casts, ProductKind::grouped}) {
    const auto first = static_cast<std::ptrdiff_t>(tasks.size());
    for (std::size_t p = 0; p < precision_count; ++p)
      tasks.push_back(products(base, all, static_cast<Precision>(p), kind, start));
    std::stable_sort(tasks.begin() + first, tasks.end(), [](const auto& a, const auto& b) {
      return a.points.size() > b.points.size();
    });
  }
  return tasks;
}

// Memory-bound kernels, by what they do. Large copies decide the device's constants.
std::vector<FitTask> memory_kernels(const DeviceSpec& base, const std::vector<Measurement>& all) {
  std::map<std::string, FitTask> tasks;
  for (const auto& m : points_of<MemoryKernel>(all)) {
    FitTask& task = tasks[std::get<MemoryKernel>(m.what).what];
    task.points.push_back(m);
  }
  std::vector<FitTask> found;
  for (auto& [what, task] : tasks) {
    task.what = what;
    task.knobs = {
        {"memory_efficiency.large", base.memory_efficiency, 1e-3, 1, true, {}, false},
        {"memory_efficiency.half_bytes", base.memory_half.value, 0, 1e9, false, {}, false}};
    task.model = [base](const std::vector<double>& values, const Measurement& m) {
      DeviceSpec device = base;
      device.memory_efficiency = values[0];
      device.memory_half = Bytes(values[1]);
      const auto& kernel = std::get<MemoryKernel>(m.what);
      return streaming_time(kernel.moved, kernel.kernels, device);
    };
    found.push_back(std::move(task));
  }
  return found;
}

FitTask launches(const DeviceSpec& base, const std::vector<Measurement>& all) {
  FitTask task;
  task.what = "operators of PyTorch, on the host";
  task.knobs = {{"launch.kernel_s", base.kernel_launch.value, 1e-7, 1e-3, true}};
  task.points = points_of<Launch>(all);
  task.model = [](const std::vector<double>& values, const Measurement& m) {
    return Seconds(values[0] * std::get<Launch>(m.what).kernels);
  };
  return task;
}

Seconds attention_time(const AttentionRun& kernel, const DeviceSpec& device) {
  Seconds time;
  if (kernel.passes != AttentionRun::Passes::backward)
    time += device_time(kernel.op, Pass::forward, device, kernel.precision);
  if (kernel.passes != AttentionRun::Passes::forward)
    time += device_time(kernel.op, Pass::input_gradient, device, kernel.precision);
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
  for (const auto& m : points_of<AttentionRun>(all))
    if (!std::get<AttentionRun>(m.what).op.narrow) task.points.push_back(m);
  const auto generation = [](Measurement& m) -> bool& {
    return std::get<AttentionRun>(m.what).op.second_generation;
  };
  const bool better =
      std::ranges::any_of(task.points, [&](Measurement& m) { return !generation(m); });
  for (auto& m : task.points) generation(m) = generation(m) && (separate || better);
  for (const bool second : {false, true}) {  // forward and backward together determine one constant
    const auto shows = [&](Measurement& m, bool both) {
      const auto passes = std::get<AttentionRun>(m.what).passes;
      return generation(m) == second && (passes == AttentionRun::Passes::both) == both;
    };
    const auto any = [&](bool both) {
      return std::ranges::any_of(task.points, [&](Measurement& m) { return shows(m, both); });
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

// Attention with fp8 operands, relative to 16 bits.
FitTask narrow_attention(const DeviceSpec& base, const std::vector<Measurement>& all) {
  FitTask task;
  task.what = "fp8 attention";
  const auto& forward = base.narrow_attention_forward;
  const auto& backward = base.narrow_attention_backward;
  const bool known = forward[0] != 1 || backward[0] != 1;
  const auto knob = [&](const char* name, double start) {
    return Knob{fmt::format("attention.fp8_speedup.{}", name), start, 0.1, 4, true, {}, known};
  };
  task.knobs = {knob("forward_128", forward[0]), knob("forward_192", forward[1]),
                knob("backward_128", backward[0]), knob("backward_192", backward[1])};
  for (const auto& m : points_of<AttentionRun>(all))
    if (std::get<AttentionRun>(m.what).op.narrow) task.points.push_back(m);
  task.model = [base](const std::vector<double>& values, const Measurement& m) {
    DeviceSpec device = base;
    device.narrow_attention_forward = {values[0], values[1]};
    device.narrow_attention_backward = {values[2], values[3]};
    return attention_time(std::get<AttentionRun>(m.what), device);
  };
  return task;
}

// The measurements that a device's formulas predict; the others are added to `unused`.
std::vector<Measurement> priced_by(const DeviceSpec& device,
                                   const std::vector<Measurement>& measurements,
                                   std::vector<Unused>& unused) {
  std::vector<Measurement> priced;
  for (const auto& m : measurements) {
    const auto* product = std::get_if<Product>(&m.what);
    const auto* attention = std::get_if<AttentionRun>(&m.what);
    if (product != nullptr && device.peak_of(product->precision).value <= 0) {
      unused.push_back({m.id,
                        fmt::format("the device has no {} rate", to_string(product->precision)),
                        m.device});
    } else if (attention != nullptr && is_narrow(attention->precision) && !attention->op.narrow) {
      unused.push_back({m.id, "attention below 16 bits is priced in fp8 only", m.device});
    } else {
      priced.push_back(m);
    }
  }
  return priced;
}

// All tasks of a device but the copies.
std::vector<FitTask> tasks_after_copies(const DeviceSpec& device,
                                        const std::vector<Measurement>& priced, Seconds start,
                                        bool separate_flash2) {
  auto tasks = all_products(device, priced, start);
  tasks.push_back(attention(device, priced, separate_flash2));
  tasks.push_back(narrow_attention(device, priced));
  for (auto& task : memory_kernels(device, priced)) tasks.push_back(std::move(task));
  tasks.push_back(launches(device, priced));
  return tasks;
}

}  // namespace

std::vector<FittedGroup> fit_device(const DeviceSpec& base,
                                    const std::vector<Measurement>& measurements,
                                    bool separate_flash2, std::vector<Unused>& unused,
                                    Seconds group_start) {
  const auto priced = priced_by(base, measurements, unused);
  std::vector<FittedGroup> groups;
  DeviceSpec device = base;
  if (const auto task = copies(base, priced); !task.points.empty()) {
    groups.push_back(fit(task));
    device.memory_efficiency = groups.front().constants[0].after;
    device.memory_half = Bytes(groups.front().constants[1].after);
  }
  const auto tasks = tasks_after_copies(device, priced, group_start, separate_flash2);
  const auto shipped = tasks_after_copies(base, priced, group_start, separate_flash2);
  for (std::size_t i = 0; i < tasks.size(); ++i)
    if (!tasks[i].points.empty()) groups.push_back(fit(tasks[i], shipped[i]));
  return groups;
}

}  // namespace calibrate
