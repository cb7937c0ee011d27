#include "costmodel/machine/device_reader.hpp"

#include <fmt/format.h>

#include "costmodel/base/escape.hpp"
#include "costmodel/config/map_reader.hpp"
#include "costmodel/machine/rate_table_reader.hpp"

namespace costmodel {

namespace {

// A map of one group of a device file: {key: quantity, ..., source: where it comes from}. The
// source is required.
MapReader group(MapReader& device, std::string_view key) {
  MapReader reader(device.required(key), std::string(key));
  reader.required("source");
  return reader;
}

void read_peaks(MapReader& device, DeviceSpec& spec) {
  MapReader reader = group(device, "peak_flops_per_s");
  for (std::size_t i = 0; i < precision_count; ++i) {
    spec.peak[i] =
        FlopsPerSecond(reader.number(precision_names[i], Dimension::rate, 1, 1e20).value_or(0));
  }
  reader.finish();
  MapReader vector = group(device, "vector_flops_per_s");
  spec.vector_peak = FlopsPerSecond(vector.required_number("value", Dimension::rate, 1, 1e20));
  vector.finish();
}

void read_device_memory(MapReader& device, DeviceSpec& spec) {
  MapReader reader = group(device, "memory");
  spec.memory = Bytes(reader.required_number("bytes", Dimension::size, 1, 1e18));
  spec.memory_bandwidth = BytesPerSecond(
      reader.required_number("bandwidth_bytes_per_s", Dimension::bandwidth, 1, 1e18));
  reader.finish();
  MapReader reached = group(device, "memory_efficiency");
  spec.memory_efficiency = reached.required_number("large", Dimension::count, 1e-3, 1);
  spec.memory_half = Bytes(reached.number("half_bytes", Dimension::size, 0, 1e12).value_or(0));
  reached.finish();
}

// How much faster fp8 operands make attention, where the file says it.
void read_narrow_attention(MapReader& attention, DeviceSpec& spec) {
  const Value* narrow = attention.optional("fp8_speedup");
  if (narrow == nullptr) return;
  MapReader reader(*narrow, "fp8_speedup");
  reader.required("source");
  const auto read = [&](const std::string& pass, std::array<double, 2>& speedup) {
    speedup[0] = reader.required_number(pass + "_128", Dimension::count, 0.1, 4);
    speedup[1] = reader.required_number(pass + "_192", Dimension::count, 0.1, 4);
  };
  read("forward", spec.narrow_attention_forward);
  read("backward", spec.narrow_attention_backward);
  reader.finish();
}

void read_kernels(MapReader& device, DeviceSpec& spec) {
  MapReader gemm = group(device, "gemm");
  spec.gemm_efficiency = gemm.required_number("efficiency", Dimension::count, 1e-3, 1);
  spec.gemm_half_k = gemm.number("half_k", Dimension::count, 0, 1e6).value_or(0);
  spec.narrow_group_gradient =
      gemm.number("narrow_group_gradient", Dimension::count, 0.1, 1).value_or(1);
  spec.gemm_start = Seconds(gemm.number("start_s", Dimension::time, 0, 1).value_or(0));
  if (const Value* own = gemm.optional("precision_efficiency")) {
    MapReader inner(*own, "precision_efficiency");
    inner.optional("source");
    for (std::size_t i = 0; i < precision_count; ++i) {
      spec.gemm_precision_efficiency[i] =
          inner.number(std::string(precision_names[i]), Dimension::count, 1e-3, 1).value_or(0);
    }
    inner.finish();
  }
  gemm.finish();
  MapReader attention = group(device, "attention");
  spec.attention_forward =
      attention.required_number("forward_efficiency", Dimension::count, 1e-3, 1);
  spec.attention_backward =
      attention.required_number("backward_efficiency", Dimension::count, 1e-3, 1);
  spec.attention2_forward = attention.number("flash2_forward_efficiency", Dimension::count, 1e-3, 1)
                                .value_or(spec.attention_forward);
  spec.attention2_backward =
      attention.number("flash2_backward_efficiency", Dimension::count, 1e-3, 1)
          .value_or(spec.attention_backward);
  spec.attention_half_sequence =
      attention.number("half_sequence", Dimension::count, 0, 1e6).value_or(0);
  spec.attention_half_blocks =
      attention.number("half_blocks", Dimension::count, 0, 1e6).value_or(0);
  spec.attention_half_head_dim =
      attention.number("half_head_dim", Dimension::count, 0, 1e6).value_or(0);
  read_narrow_attention(attention, spec);
  attention.finish();
  if (const Value* power = device.optional("power")) {
    MapReader inner(*power, "power");
    inner.required("source");
    spec.idle_boost = inner.number("idle_boost", Dimension::count, 0, 0.9).value_or(0);
    inner.finish();
  }
  if (const Value* host = device.optional("host")) {
    MapReader inner(*host, "host");
    inner.required("source");
    spec.host_bandwidth = BytesPerSecond(
        inner.required_number("bandwidth_bytes_per_s", Dimension::bandwidth, 1, 1e15));
    inner.finish();
  }
  MapReader launch = group(device, "launch");
  spec.kernel_launch = Seconds(launch.required_number("kernel_s", Dimension::time, 0, 1));
  spec.graph_kernel_launch =
      Seconds(launch.number("graph_kernel_s", Dimension::time, 0, 1).value_or(0));
  launch.finish();
}

void read_measured(MapReader& device, DeviceSpec& spec) {
  const Value* operators = device.optional("operators");
  if (operators == nullptr) return;
  MapReader reader(*operators, "operators");
  reader.required("source");
  spec.measured = read_rate_tables(reader.required("tables"));
  reader.finish();
}

void read_together(MapReader& device, DeviceSpec& spec) {
  const Value* list = device.optional("together");
  if (list == nullptr) return;
  if (list->kind != Value::Kind::sequence) {
    throw ConfigError(list->mark, "together is not a list",
                      "write a list of {devices, slowdown, source}");
  }
  double last = 0;
  for (const Value& item : list->items) {
    MapReader reader(item, "together");
    reader.required("source");
    const double devices = reader.required_number("devices", Dimension::count, 1, 1e6);
    if (devices <= last)
      throw ConfigError(item.mark, "devices does not grow", "list fewer devices first");
    spec.together.push_back({devices,
                             reader.required_number("slowdown", Dimension::count, 0.01, 1e6),
                             reader.number("pace", Dimension::count, 0.01, 1e6).value_or(0)});
    reader.finish();
    last = devices;
  }
}

void read_pace(MapReader& device, DeviceSpec& spec) {
  const Value* pace = device.optional("pace");
  if (pace == nullptr) return;
  MapReader reader(*pace, "pace");
  reader.required("source");
  spec.yardstick = Seconds(reader.required_number("yardstick_s", Dimension::time, 1e-9, 1));
  reader.finish();
}

}  // namespace

DeviceSpec read_device(const Value& map, const std::string& name) {
  MapReader reader(map, "device " + quote(name));
  DeviceSpec device;
  device.name = name;
  device.title = reader.text("title").value_or(name);
  read_peaks(reader, device);
  MapReader processors = group(reader, "multiprocessors");
  processors.required("value");
  device.multiprocessors = static_cast<int>(*processors.integer("value", {1, 1'000'000}));
  processors.finish();
  read_device_memory(reader, device);
  read_kernels(reader, device);
  read_measured(reader, device);
  read_together(reader, device);
  read_pace(reader, device);
  reader.optional("source");
  reader.optional("notes");
  reader.optional("measured_as");  // what sources of microbenchmarks call it; `calibrate` reads it
  reader.optional("machine");      // what `shardplan calibrate --backend` measured; read by people
  reader.optional("fit");          // what `shardplan calibrate` fitted it to; read by people
  reader.finish();
  return device;
}

}  // namespace costmodel
