// The calibration of a GPU with the CPU in its place: what it measures, the profile it writes, and
// the times that the cost model reads from that.
#include "calibrate/commands/gpu_tasks.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "calibrate/measure/node_bench.hpp"
#include "calibrate/profile/gpu_profile.hpp"
#include "costmodel/config/yaml.hpp"
#include "costmodel/cost/device_time.hpp"
#include "costmodel/cost/measured_time.hpp"
#include "costmodel/machine/device_reader.hpp"
#include "runtime/devices/cpu_device.hpp"
#include "tests/runtime/support/host_graphs.hpp"

namespace gpu_tasks_test {

using calibrate::Record;
using costmodel::Linear;
using costmodel::Op;
using costmodel::Pass;
using costmodel::Precision;
using costmodel::Seconds;

namespace {

calibrate::GpuShapes small_shapes() {
  calibrate::GpuShapes shapes;
  shapes.rows = {16, 32};
  shapes.sides = {16, 64};
  shapes.lengths = {16, 64};
  shapes.head_dims = {8, 16};
  shapes.vectors = {64, 4096};
  for (const bool llama : {false, true}) {
    for (const bool flash : {false, true}) {
      calibrate::SmallModel m;
      m.llama = llama;
      m.flash = flash;
      m.hidden = 32;
      m.ffn = 64;
      m.vocab = 96;
      m.sequence = 16;
      m.kv_heads = llama ? 2 : 4;
      m.dropout = 0.1;
      shapes.models.push_back(m);
    }
  }
  return shapes;
}

std::vector<Record> measured(runtime::Device& device) {
  const calibrate::GpuBench bench{device, Precision::fp32, calibrate::wall_clock()};
  calibrate::StopRule rule;
  rule.least = rule.most = 2;
  rule.longest = Seconds(1e-3);
  std::vector<Record> all;
  for (const auto& task : calibrate::gpu_tasks(bench, small_shapes()))
    for (auto& record : task.run(rule)) all.push_back(std::move(record));
  return all;
}

runtime::CudaReport some_gpu() {
  runtime::CudaReport report;
  report.gpus = {{.name = "A \"fast\" GPU",
                  .compute_major = 9,
                  .memory_bytes = 1000000000,
                  .multiprocessors = 132}};
  report.versions = {.driver = 13020, .runtime = 13000, .cublas = 130100};
  return report;
}

costmodel::DeviceSpec read(const std::vector<Record>& records, Precision precision) {
  const auto value =
      calibrate::gpu_profile(records, precision, some_gpu(), "2026-01-02", "shardplan calibrate x");
  return costmodel::read_device(costmodel::parse_yaml(to_yaml(value), "mine.yaml"), "mine");
}

}  // namespace

TEST_CASE("every operator of the models is measured in each of its passes, and gives a profile") {
  runtime::CpuDevice cpu;
  const auto records = measured(cpu);
  std::map<std::string, std::set<Pass>> passes;
  for (const Record& r : records) {
    CAPTURE(r.op);
    CHECK(r.time.median.value > 0);
    CHECK(r.amount > 0);
    passes[r.op].insert(r.pass);
  }
  for (const char* op : {"linear", "flash attention", "layernorm", "rmsnorm", "activation",
                         "gated activation", "softmax", "dropout", "rotary", "cross-entropy"}) {
    CAPTURE(op);
    CHECK(passes[op].count(Pass::forward) == 1);
    CHECK(passes[op].count(Pass::input_gradient) == 1);
  }
  CHECK(passes["linear"].count(Pass::weight_gradient) == 1);
  for (const char* op : {"copy", "optimizer", "call"}) CHECK(passes[op].count(Pass::forward) == 1);
  const auto device = read(records, Precision::fp32);
  const Op grid = Linear{32, 64, 16, false, false};
  for (const Record& r : records) {
    if (r.op != "linear" ||
        r.point != costmodel::measured_work(grid, r.pass, Precision::fp32).point)
      continue;
    CHECK(costmodel::device_time(grid, r.pass, device, Precision::fp32).value ==
          doctest::Approx(r.time.median.value).epsilon(1e-4));
  }
}

TEST_CASE("where a device has graphs, a call is measured in one as well") {
  runtime::CpuDevice cpu;
  host_graphs::RecordedDevice device(cpu);
  const auto records = measured(device);
  const auto calls = [&](const char* op) { return std::ranges::count(records, op, &Record::op); };
  CHECK(calls("call") == 1);
  REQUIRE(calls("graph call") == 1);
  CHECK(device.kept() == 0);
  const auto replayed = std::ranges::find(records, "graph call", &Record::op);
  const auto profile = read(records, Precision::fp32);
  CHECK(profile.graph_kernel_launch.value ==
        doctest::Approx(replayed->time.median.value).epsilon(1e-5));
}

TEST_CASE("a launch costs what was recorded of it, with and without a graph") {
  const auto taking = [](double s) { return calibrate::Timing{Seconds(s), Seconds(s), 5, 0.01}; };
  const auto work =
      costmodel::measured_work(Linear{64, 128, 128, false, false}, Pass::forward, Precision::bf16);
  std::vector<Record> records{{"t", "linear", Pass::forward, work.point, work.amount, taking(2e-6)},
                              {"t", "copy", Pass::forward, {4e9}, 8e9, taking(2e-3)},
                              {"call", "call", Pass::forward, {1}, 1, taking(3.5e-6)}};
  const auto alone = read(records, Precision::bf16);
  CHECK(alone.kernel_launch.value == doctest::Approx(3.5e-6));
  CHECK(alone.graph_kernel_launch.value == 0);  // not measured, not said
  records.push_back({"call in a graph", "graph call", Pass::forward, {1}, 1, taking(1.25e-6)});
  const auto both = read(records, Precision::bf16);
  CHECK(both.kernel_launch.value == doctest::Approx(3.5e-6));
  CHECK(both.graph_kernel_launch.value == doctest::Approx(1.25e-6));
  const auto profile = calibrate::gpu_profile(records, Precision::bf16, some_gpu(), "2026-01-02",
                                              "shardplan calibrate x");
  const std::string source = profile.find("launch")->find("source")->text;
  CHECK(source.find("2026-01-02, A \"fast\" GPU") != std::string::npos);
  CHECK(source.find("as one CUDA graph") != std::string::npos);
}

TEST_CASE("a profile in bf16 is of bf16, and says whose it is") {
  const Op op = Linear{64, 128, 128, false, false};
  const auto work = costmodel::measured_work(op, Pass::forward, Precision::bf16);
  const auto taking = [](double s) { return calibrate::Timing{Seconds(s), Seconds(s), 5, 0.01}; };
  const std::vector<Record> records{
      {"t", "linear", Pass::forward, work.point, work.amount, taking(2e-6)},
      {"t", "copy", Pass::forward, {4e9}, 8e9, taking(2e-3)},
      {"t", "call", Pass::forward, {1}, 1, taking(3e-6)},
      {"t", "optimizer", Pass::forward, {4e6}, 4e6, taking(1e-5)}};
  const auto device = read(records, Precision::bf16);
  CHECK(costmodel::device_time(op, Pass::forward, device, Precision::bf16).value ==
        doctest::Approx(2e-6).epsilon(1e-5));
  CHECK(!costmodel::measured_time(op, Pass::forward, device, Precision::fp32));
  CHECK(costmodel::measured_optimizer(costmodel::Bytes(4e6), device)->value ==
        doctest::Approx(1e-5).epsilon(1e-5));
  CHECK(device.memory_bandwidth.value == doctest::Approx(4e12));
  CHECK(device.multiprocessors == 132);
  const std::string text = to_yaml(calibrate::gpu_profile(records, Precision::bf16, some_gpu(),
                                                          "2026-01-02", "shardplan calibrate x"));
  for (const char* said : {"2026-01-02", "A \\\"fast\\\" GPU", "CUDA 13.2", "CUDA 13.0",
                           "cuBLASLt 130100", "shardplan calibrate x"}) {
    CAPTURE(said);
    CHECK(text.find(said) != std::string::npos);
  }
}

TEST_CASE("runs between waits are counted apart") {
  int runs = 0;
  double now = 0;
  const auto clock = [&] { return Seconds(now); };
  calibrate::StopRule rule;
  const auto timing = calibrate::time_runs(
      [&] {
        ++runs;
        now += 1e-5;
      },
      runtime::host_memory(), rule, clock);
  CHECK(timing.median.value == doctest::Approx(1e-5));
  CHECK(runs > 100 * timing.repeats);  // a millisecond's each
}

}  // namespace gpu_tasks_test
