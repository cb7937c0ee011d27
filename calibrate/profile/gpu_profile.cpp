#include "calibrate/profile/gpu_profile.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "calibrate/profile/measured_tables.hpp"
#include "calibrate/profile/profile_parts.hpp"
#include "costmodel/machine/collective_table_reader.hpp"
#include "costmodel/machine/rate_table_reader.hpp"

namespace calibrate {

using namespace costmodel;

namespace {

// 13020 is CUDA 13.2.
std::string cuda_version(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

Value machine_of(const runtime::CudaReport& report, const std::string& date,
                 const std::string& command) {
  const runtime::Gpu& gpu = report.gpus.front();
  Value map;
  map.set("date", quoted(date));
  map.set("processor", quoted(gpu.name));
  map.set("compute_capability", quoted(fmt::format("{}.{}", gpu.compute_major, gpu.compute_minor)));
  map.set("driver", quoted("CUDA " + cuda_version(report.versions.driver)));
  map.set("runtime", quoted("CUDA " + cuda_version(report.versions.runtime)));
  map.set("products", quoted(fmt::format("cuBLASLt {}", report.versions.cublas)));
  map.set("nccl",
          quoted(report.versions.nccl == 0 ? "none" : std::to_string(report.versions.nccl)));
  map.set("command", quoted(command));
  return map;
}

// The precisions in which products were measured, the calibration's own first.
std::vector<Precision> precisions_of(const std::vector<Record>& records, Precision own) {
  std::vector<Precision> all{own};
  for (std::size_t i = 0; i < precision_count; ++i) {
    const auto other = static_cast<Precision>(i);
    if (other != own && !records_in(records, other).empty()) all.push_back(other);
  }
  return all;
}

double peak_of(const std::vector<Record>& records) {
  return std::max(1.0, best_rate(records, "linear", Pass::forward));
}

Value peaks_of(const std::vector<Record>& records, Precision own, const std::string& by) {
  Entries peaks;
  for (const auto precision : precisions_of(records, own)) {
    const double peak = peak_of(precision == own ? records : records_in(records, precision));
    peaks.emplace_back(to_string(precision), figure(peak));
  }
  return group(peaks, by + ": the fastest product (cuBLASLt), not the data sheet's; in fp8 with "
                           "the casts of its operands");
}

Value operators_of(const std::vector<Record>& records, Precision own, const std::string& by) {
  std::vector<RateTable> tables;
  for (const auto precision : precisions_of(records, own)) {
    for (auto& table :
         tables_of(precision == own ? records : records_in(records, precision), precision))
      tables.push_back(std::move(table));
  }
  return group({{"tables", to_value(tables)}},
               by + ": medians of the time between two events on the stream, each operator alone "
                    "by the runtime's device, in caches that hold only what the operator before "
                    "has written");
}

// Launch times with and without a graph, of the same kernel.
Value launch_of(const std::vector<Record>& records, const std::string& by) {
  Entries entries{{"kernel_s", figure(call_time(records))}};
  std::string source = by + ": one kernel of many that wait for none but the one before";
  const auto replayed = std::ranges::find(records, "graph call", &Record::op);
  if (replayed != records.end()) {
    entries.emplace_back("graph_kernel_s", figure(replayed->time.median.value));
    source += "; graph_kernel_s: of the same kernels as one CUDA graph";
  }
  return group(entries, source);
}

// Compute capability 8.0, 9.0 and 10.x: A100, Hopper and Blackwell of data centres.
Value flex_dispatcher_of(const runtime::Gpu& gpu) {
  const bool runs = gpu.compute_major == 10 || gpu.compute_major == 9 ||
                    (gpu.compute_major == 8 && gpu.compute_minor == 0);
  return group({{"value", scalar_value(runs ? "true" : "false")}},
               fmt::format("compute capability {}.{}: deepep and hybridep run on 8.0, 9.0 and 10 "
                           "(Megatron-Bridge, training/flex_dispatcher_backend.py)",
                           gpu.compute_major, gpu.compute_minor));
}

}  // namespace

Value gpu_profile(const std::vector<Record>& records, Precision precision,
                  const runtime::CudaReport& report, const std::string& date,
                  const std::string& command,
                  const std::vector<std::pair<std::string, std::string>>& state) {
  const runtime::Gpu& gpu = report.gpus.front();
  const std::string by = fmt::format("measured by shardplan calibrate, {}, {}", date, gpu.name);
  const double peak = peak_of(records);
  // What a description may have; the host of a test, busy with others, is slower.
  constexpr double least = 1e8;
  const double bytes_per_s = std::max(least, bandwidth(records));
  Value map;
  map.set("title", quoted(gpu.name));
  map.set("peak_flops_per_s", peaks_of(records, precision, by));
  map.set("vector_flops_per_s", group({{"value", figure(peak / 16)}},
                                      "assumed: a sixteenth of the product's rate, as on Hopper"));
  map.set("multiprocessors",
          group({{"value", scalar_value(std::to_string(gpu.multiprocessors))}}, by));
  map.set("flex_dispatcher", flex_dispatcher_of(gpu));
  map.set("memory", group({{"bytes", figure(static_cast<double>(gpu.memory_bytes))},
                           {"bandwidth_bytes_per_s", figure(bytes_per_s)}},
                          by + ": the largest copy, read and written"));
  set_formulas(map, records, peak, bytes_per_s, by);
  map.set("launch", launch_of(records, by));
  map.set("operators", operators_of(records, precision, by));
  Value machine = machine_of(report, date, command);
  for (const auto& [name, value] : state) machine.set(name, quoted(value));
  map.set("machine", machine);
  return map;
}

}  // namespace calibrate
