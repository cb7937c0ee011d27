#include "calibrate/fit/microbenchmark.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "calibrate/fit/measured_shape.hpp"

namespace calibrate {

using namespace costmodel;

namespace {

constexpr std::array<std::string_view, 9> kinds{
    "gemm", "attention", "collective", "copy", "memory", "quantize", "host", "overlap", "layer"};

// Keys of `measured` that no reader takes: for people, or of kinds that nothing prices.
constexpr std::string_view measured_for_people =
    "efficiency algbw_gb_s in_place_algbw_gb_s samples time_us_min time_us_max "
    "time_us_std wrong in_place_wrong memory_bw_gb_s entries bandwidth_gb_s_min local_us "
    "time_us_reverse bandwidth_gb_s_max sms_used sms_v1 sms_v2_min sms_v2_max ctas "
    "bytes_per_pair message_bytes small_message_us busbw_gb_s_min busbw_gb_s_max "
    "bandwidth_gib_s fixed_latency_us latency_us overlap_coefficient "
    "bus_bandwidth_fraction_of_peak logical_bw_gb_s nvl_bw_gb_s nvl_chunk bytes speedup "
    "speedup_over_separate_kernels hbm_gb_s nvlink_gb_s host_launch_us gpu_time_us "
    "gpu_busy_us launches_time_us graph_time_us per_launch_us enqueue_per_launch_us "
    "fixed_us per_node_us host_time_us_min host_time_us_max allocator_calls launches "
    "clock_mhz utilisation model_bandwidth_gb_s alone_us overlapped_us utilisation_alone "
    "utilisation_overlapped comm_ctas slowdown slowdown_min slowdown_max time_reduction "
    "gemm_ctas shared iteration_ms forward_backward_ms optimizer_ms layer_memory_mb";

std::optional<double> positive(MapReader& reader, std::string_view key) {
  return first_of(reader, {key});
}

void read_measured(MapReader& measured, Figures& f) {
  f.time_us = first_of(measured, {"time_us", "in_place_time_us"});
  f.tflops = positive(measured, "tflops");
  f.bus_gb_s = first_of(measured, {"busbw_gb_s", "in_place_busbw_gb_s"});
  f.copy_gb_s = positive(measured, "bandwidth_gb_s");
  f.exchange_gb_s = first_of(measured, {"algbw_gb_s", "bottleneck_bw_gb_s", "rdma_bw_gb_s"});
  if (!f.exchange_gb_s) f.exchange_gb_s = f.copy_gb_s;
  f.host_us = positive(measured, "host_time_us");
  f.kernels = positive(measured, "kernels");
  f.timing = measured.text("timing").value_or("");
  for (std::size_t from = 0; from < measured_for_people.size();) {
    const auto end = std::min(measured_for_people.find(' ', from), measured_for_people.size());
    measured.optional(measured_for_people.substr(from, end - from));
    from = end + 1;
  }
  measured.finish();
}

Figures read_figures(MapReader& entry) {
  static const Value nothing;
  Figures f;
  entry.required("op");
  f.op = *entry.text("op");
  const Value* system = entry.optional("system");
  MapReader where(system == nullptr ? nothing : *system, "system");
  f.nodes = static_cast<int>(where.integer("nodes", {1, 1'000'000}).value_or(0));
  f.algorithm = where.text("algo").value_or("");
  f.interconnect = where.text("interconnect").value_or("");
  accept(where, {"gpus", "note", "scale", "gpus_per_node", "racks", "cpu"});
  where.finish();
  MapReader measured(entry.required("measured"), "measured");
  read_measured(measured, f);
  if (const Value* derived = entry.optional("derived"); derived != nullptr) {
    MapReader reader(*derived, "derived");
    f.derived_time_us = positive(reader, "time_us");
    accept(reader, {"formula", "tflops", "tflops_causal_halved", "efficiency", "busbw_gb_s",
                    "bandwidth_gb_s", "slowdown"});
    reader.finish();
  }
  return f;
}

Measurement read_entry(MapReader& entry, std::size_t kind, const Value& shape_map) {
  Measurement m;
  entry.required("device");
  m.device = *entry.text("device");
  const Figures figures = read_figures(entry);
  MapReader source(entry.required("source"), "source");
  source.required("title");
  m.title = *source.text("title");
  m.measured = source.text("measured").value_or("");
  accept(source, {"where", "ref"});
  source.finish();
  accept(entry, {"software", "confidence", "notes"});
  entry.finish();
  m.id = entry.text("id").value_or("");
  MapReader shape(shape_map, "shape");
  constexpr std::array readers{read_product, read_attention,     read_collective,
                               read_copy,    read_memory_kernel, read_quantisation,
                               read_host,    read_overlap,       read_layer};
  readers[kind](shape, figures, m);
  shape.finish();
  return m;
}

}  // namespace

Microbenchmarks& Microbenchmarks::operator+=(const Microbenchmarks& other) {
  measurements.insert(measurements.end(), other.measurements.begin(), other.measurements.end());
  unused.insert(unused.end(), other.unused.begin(), other.unused.end());
  return *this;
}

Microbenchmarks read_microbenchmarks(const Value& list) {
  static const Value nothing;
  if (list.kind != Value::Kind::sequence) {
    throw ConfigError(list.mark, "is not a list of measurements",
                      "write a list of {id, device, kind, op, shape, measured, source}");
  }
  Microbenchmarks found;
  for (const Value& item : list.items) {
    MapReader entry(item, "measurement");
    entry.required("id");
    const std::string id = *entry.text("id");
    entry.required("kind");
    const auto kind = entry.one_of("kind", kinds);
    const Value* shape = entry.optional("shape");
    try {
      found.measurements.push_back(read_entry(entry, *kind, shape == nullptr ? nothing : *shape));
    } catch (const NotPriced& why) {
      found.unused.push_back({id, why.reason, entry.text("device").value_or("")});
    }
  }
  return found;
}

}  // namespace calibrate
