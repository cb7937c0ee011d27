#include "costmodel/machine/device_reader.hpp"

#include <fmt/format.h>

#include <array>

#include "costmodel/base/escape.hpp"
#include "costmodel/base/unit_text.hpp"
#include "costmodel/config/key.hpp"
#include "costmodel/machine/plausible.hpp"
#include "costmodel/machine/rate_table_reader.hpp"

namespace costmodel {

namespace {

using D = DeviceSpec;

constexpr double least_part = 1e-3;

// A map of one group of a device file: {key: quantity, ..., source: where it comes from}.
Key<D> group(std::string_view name, const Keys<D>& keys) {
  return key::map<D>(name, std::identity{}, keys);
}

// A row for every precision.
template <class Quantity>
Keys<D> by_precision(std::array<Quantity, precision_count> D::*field, plausible::Range range,
                     std::string_view help) {
  Keys<D> keys;
  for (std::size_t i = 0; i < precision_count; ++i) {
    keys.push_back(key::number<D>(
        precision_names[i], [=](D& d) -> Quantity& { return (d.*field)[i]; }, range, help));
  }
  return keys;
}

const Keys<D>& peak_rows() {
  static const Keys<D> keys = joined<D>(
      key::rows<D>(key::required_source<D>()),
      by_precision(&D::peak, plausible::arithmetic, "dense products; absent: has no such unit"));
  return keys;
}

const Keys<D>& vector_rows() {
  static const auto keys =
      key::rows<D>(key::required_source<D>(),
                   key::required(key::number<D>("value", &D::vector_peak, plausible::arithmetic,
                                                "element-wise arithmetic")));
  return keys;
}

const Keys<D>& processor_rows() {
  static const auto keys = key::rows<D>(
      key::required_source<D>(),
      key::required(key::whole<D>("value", &D::multiprocessors, {1, 1'000'000}, "how many")));
  return keys;
}

const Keys<D>& dispatcher_rows() {
  static const auto keys =
      key::rows<D>(key::required_source<D>(),
                   key::required(key::flag<D>("value", &D::flex_dispatcher,
                                              "kernels of deepep and hybridep run on it")));
  return keys;
}

const Keys<D>& memory_rows() {
  static const auto keys =
      key::rows<D>(key::required_source<D>(),
                   key::required(key::number<D>("bytes", &D::memory, plausible::memory, "all")),
                   key::required(key::number<D>("bandwidth_bytes_per_s", &D::memory_bandwidth,
                                                plausible::memory_rate, "read and written")),
                   key::number<D>("workspace_bytes", &D::workspace, 0, 1e12,
                                  "what PyTorch allocates for cuBLAS, a handle and stream"));
  return keys;
}

const Keys<D>& cache_rows() {
  static const auto keys = key::rows<D>(
      key::required_source<D>(),
      key::required(key::number<D>("bytes", &D::cache, plausible::memory, "of the second level")),
      key::required(key::number<D>("bandwidth_bytes_per_s", &D::cache_bandwidth,
                                   plausible::memory_rate,
                                   "read by all multiprocessors together")));
  return keys;
}

const Keys<D>& memory_efficiency_rows() {
  static const auto keys = key::rows<D>(
      key::required_source<D>(),
      key::required(key::number<D>("large", &D::memory_efficiency, least_part, 1,
                                   "fraction of the bandwidth that large kernels reach")),
      key::number<D>("half_bytes", &D::memory_half, 0, 1e12,
                     "a kernel moving x takes (x + this) / (bandwidth x large)"));
  return keys;
}

const Keys<D>& product_efficiency_rows() {
  static const Keys<D> keys = joined<D>(
      key::rows<D>(key::source<D>()),
      by_precision(&D::gemm_precision_efficiency, {least_part, 1}, "its own; absent: efficiency"));
  return keys;
}

const Keys<D>& product_rows() {
  static const auto keys = key::rows<D>(
      key::required_source<D>(),
      key::required(key::number<D>("efficiency", &D::gemm_efficiency, least_part, 1,
                                   "fraction of the peak that products reach that fill the "
                                   "device")),
      key::number<D>("half_k", &D::gemm_half_k, 0, 1e6, "inner size that reaches half of it"),
      key::number<D>("tile_rows", &D::gemm_tile_rows, 1, 1024,
                     "rows of the smallest tile of a library's product; serving alone asks; 16"),
      key::number<D>("narrow_group_gradient", &D::narrow_group_gradient, 0.1, 1,
                     "rate of the weight gradients of products in groups, with operands below 16 "
                     "bits, relative to their forward"),
      key::number<D>("start_s", &D::gemm_start, plausible::kernel,
                     "of each product: fill and drain, and the gap before it"),
      group("precision_efficiency", product_efficiency_rows()));
  return keys;
}

// How much faster fp8 operands make attention, for heads of 128 and of 192.
const Keys<D>& narrow_attention_rows() {
  const auto speedup = [](std::string_view name, std::array<double, 2> D::*field, std::size_t at) {
    return key::required(key::number<D>(
        name, [=](D& d) -> double& { return (d.*field)[at]; }, 0.1, 4,
        "of fp8 operands over 16-bit ones, with heads of this size"));
  };
  static const auto keys = key::rows<D>(key::required_source<D>(),
                                        speedup("forward_128", &D::narrow_attention_forward, 0),
                                        speedup("forward_192", &D::narrow_attention_forward, 1),
                                        speedup("backward_128", &D::narrow_attention_backward, 0),
                                        speedup("backward_192", &D::narrow_attention_backward, 1));
  return keys;
}

Key<D> attention_tables(std::string_view name, std::vector<RateTable> D::*tables,
                        std::string_view help) {
  return key::special<D>(
      name,
      key::fixed_text("a list of {op: flash attention, pass, precision, "
                      "sequence, head_dim, flops_per_s}"),
      help, [name, tables](MapReader& reader, D& device) {
        const Value* list = reader.optional(name);
        if (list == nullptr) return;
        device.*tables = read_rate_tables(*list);
        for (std::size_t i = 0; i < (device.*tables).size(); ++i) {
          const RateTable& table = (device.*tables)[i];
          if (table.op != MeasuredOp::flash_attention) {
            throw ConfigError(list->items[i].mark,
                              fmt::format("{} holds a table of {}", name, name_of(table.op)),
                              "write op: flash attention");
          }
          if (table.shapes.empty()) continue;
          throw ConfigError(list->items[i].mark, fmt::format("{} holds shapes", name),
                            "give its grid alone");
        }
      });
}

const Keys<D>& attention_rows() {
  static const auto keys = key::rows<D>(
      key::required_source<D>(),
      key::required(key::number<D>("forward_efficiency", &D::attention_forward, least_part, 1,
                                   "fraction of the peak that flash attention reaches")),
      key::required(key::number<D>("backward_efficiency", &D::attention_backward, least_part, 1,
                                   "the same backward")),
      key::number<D>("flash2_forward_efficiency", &D::attention2_forward, least_part, 1,
                     "of FlashAttention 2; absent: forward_efficiency"),
      key::number<D>("flash2_backward_efficiency", &D::attention2_backward, least_part, 1,
                     "of FlashAttention 2; absent: backward_efficiency"),
      key::number<D>("half_sequence", &D::attention_half_sequence, 0, 1e6,
                     "causal kernels on s tokens reach s / (s + this) of it"),
      key::number<D>("half_blocks", &D::attention_half_blocks, 0, 1e6,
                     "with n blocks of 128 queries, n / (n + this)"),
      key::number<D>("half_head_dim", &D::attention_half_head_dim, 0, 1e6,
                     "with heads of size d, d / (d + this)"),
      attention_tables("flash2_tables", &D::attention2_measured,
                       "FlashAttention 2 as measured, for stacks that name their kernels"),
      key::number<D>("flash2_sustained_forward", &D::attention2_sustained_forward, least_part, 1,
                     "of the peak, at most, within an iteration: its tables are of kernels alone"),
      key::number<D>("flash2_sustained_backward", &D::attention2_sustained_backward, least_part, 1,
                     "the same backward"),
      attention_tables("cudnn_tables", &D::cudnn_measured,
                       "cuDNN's attention as measured, for the same"),
      group("fp8_speedup", narrow_attention_rows()));
  return keys;
}

const Keys<D>& power_rows() {
  static const auto keys = key::rows<D>(
      key::required_source<D>(),
      key::number<D>("idle_boost", &D::idle_boost, 0, 0.9,
                     "idle for a fraction f of the time, it takes 1 - f x this of its time for the "
                     "rest"),
      key::number<D>("watts", &D::watts, 1, 1e6, "power limit of a device"));
  return keys;
}

const Keys<D>& host_rows() {
  static const auto keys =
      key::rows<D>(key::required_source<D>(),
                   key::required(key::number<D>("bandwidth_bytes_per_s", &D::host_bandwidth,
                                                plausible::link, "to host memory, one direction")));
  return keys;
}

const Keys<D>& launch_rows() {
  static const auto keys =
      key::rows<D>(key::required_source<D>(),
                   key::required(key::number<D>("kernel_s", &D::kernel_launch, plausible::kernel,
                                                "host time per kernel")),
                   key::number<D>("graph_kernel_s", &D::graph_kernel_launch, plausible::kernel,
                                  "the same when replayed from a CUDA graph"),
                   key::number<D>("call_s", &D::host_call, plausible::kernel,
                                  "host time per call of a module or operator from Python, of "
                                  "stacks with launch.counts_calls; absent: as kernel_s"));
  return keys;
}

const Keys<D>& operator_rows() {
  static const auto keys = key::rows<D>(
      key::required_source<D>(),
      key::required(key::special<D>(
          "tables",
          key::fixed_text("a list of {op, pass, precision, its axes: [...], its rate: [...], "
                          "shapes: {its sizes: [...], its rate: [...]}}"),
          "operators as measured, in place of the formulas", [](MapReader& reader, D& device) {
            device.measured = read_rate_tables(reader.required("tables"));
          })));
  return keys;
}

const Keys<D::Together>& together_rows() {
  using T = D::Together;
  static const auto keys = key::rows<T>(
      key::required_source<T>(),
      key::required(key::number<T>("devices", &T::devices, 1, 1e6, "of a node that compute")),
      key::required(key::number<T>("slowdown", &T::slowdown, 0.01, 1e6,
                                   "how many times as long as alone each then takes")),
      key::number<T>("pace", &T::pace, 0.01, 1e6, "the part of it that the cores' pace explained"));
  return keys;
}

const Keys<D>& alone_rows() {
  using A = RatesAlone;
  const auto of = [](auto A::*field) {
    return [field](D & d) -> auto& {
      return d.alone ? (*d.alone).*field : d.alone.emplace().*field;
    };
  };
  const auto times = [&](std::string_view name, auto field, std::string_view help) {
    return key::number<D>(name, of(field), 0.1, 10, help);
  };
  static const auto keys = key::rows<D>(
      key::required_source<D>(),
      times(
          "gemm_efficiency", &A::gemm_efficiency,
          "of gemm.efficiency, so many times as much on a device whose node has no other at work"),
      times("gemm_half_k", &A::gemm_half_k, "the same of gemm.half_k"),
      times("gemm_start", &A::gemm_start, "the same of gemm.start_s"),
      times("memory_efficiency", &A::memory_efficiency, "the same of memory_efficiency.large"));
  return keys;
}

void read_together(const Value& list, D& device) {
  if (list.kind != Value::Kind::sequence) {
    throw ConfigError(list.mark, "together is not a list",
                      "write a list of {devices, slowdown, source}");
  }
  for (const Value& item : list.items) {
    D::Together together{};
    read_map(item, "together", together_rows(), together);
    if (!device.together.empty() && together.devices <= device.together.back().devices)
      throw ConfigError(item.mark, "devices does not grow", "list fewer devices first");
    device.together.push_back(together);
  }
}

const Keys<D>& pace_rows() {
  static const auto keys = key::rows<D>(
      key::required_source<D>(),
      key::required(key::number<D>("yardstick_s", &D::yardstick, 1e-9, 1,
                                   "time of the yardstick when the operators were measured")));
  return keys;
}

const Keys<D>& device_rows() {
  static const auto keys = key::rows<D>(
      key::text<D>("title", &D::title, "for people"),
      key::required(group("peak_flops_per_s", peak_rows())),
      key::required(group("vector_flops_per_s", vector_rows())),
      key::required(group("multiprocessors", processor_rows())),
      group("flex_dispatcher", dispatcher_rows()), key::required(group("memory", memory_rows())),
      group("cache", cache_rows()),
      key::required(group("memory_efficiency", memory_efficiency_rows())),
      key::required(group("gemm", product_rows())),
      key::required(group("attention", attention_rows())), group("power", power_rows()),
      group("host", host_rows()), key::required(group("launch", launch_rows())),
      group("operators", operator_rows()),
      key::list<D>("together", together_rows(), "how devices of a node slow one another down",
                   read_together),
      group("alone", alone_rows()), group("pace", pace_rows()), key::source<D>(),
      key::note<D>("notes", "for people"),
      key::note<D>("measured_as", "what sources of microbenchmarks call it"),
      key::note<D>("machine", "what `shardplan calibrate --backend` measured"),
      key::note<D>("fit", "what `shardplan calibrate` fitted"));
  return keys;
}

// Operators measured on a device are not those of one whose peak or bandwidth is written over them.
void leave_out_foreign_operators(const Value& map, DeviceSpec& device) {
  const Value* operators = map.find("operators");
  if (operators == nullptr || device.measured.empty()) return;
  for (const auto& [group, figure] :
       {std::pair{"peak_flops_per_s", ""}, std::pair{"memory", "bandwidth_bytes_per_s"}}) {
    const Value* figures = map.find(group);
    if (figures == nullptr) continue;
    for (const auto& entry : figures->entries) {
      const bool counts = entry.key != "source" && (*figure == '\0' || entry.key == figure);
      if (!counts || entry.value.mark.file == operators->mark.file) continue;
      device.measured.clear();
      device.left_out = fmt::format(
          "{}.{} is written over the device's own, so the operators that were measured on it are "
          "left out: the formulas stand for them",
          group, entry.key);
      return;
    }
  }
}

}  // namespace

DeviceSpec read_device(const Value& map, const std::string& name) {
  DeviceSpec device;
  device.name = device.title = name;
  device.attention2_forward = device.attention2_backward = 0;  // below what can be written
  read_map(map, "device " + quote(name), device_rows(), device);
  if (device.cache > device.memory) {
    throw ConfigError(map.find("cache")->mark,
                      fmt::format("cache of {} exceeds the device's memory, {}",
                                  format_bytes(device.cache), format_bytes(device.memory)),
                      "write the bytes of the second level");
  }
  leave_out_foreign_operators(map, device);
  if (device.attention2_forward == 0) device.attention2_forward = device.attention_forward;
  if (device.attention2_backward == 0) device.attention2_backward = device.attention_backward;
  return device;
}

std::vector<KeyText> device_keys() { return described(device_rows(), "device."); }

}  // namespace costmodel
