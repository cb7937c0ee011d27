// The calibration of a GPU with the CPU in its place: what it measures, the profile it writes, and
// the times that the cost model reads from that. On a simulated GPU: in which order, and how long
// it takes.
#include "calibrate/commands/gpu_tasks.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "calibrate/commands/cpu_command.hpp"
#include "calibrate/profile/gpu_profile.hpp"
#include "costmodel/config/yaml.hpp"
#include "costmodel/cost/device_time.hpp"
#include "costmodel/cost/measured_time.hpp"
#include "costmodel/estimate/evaluator.hpp"
#include "costmodel/machine/device_reader.hpp"
#include "runtime/devices/cpu_device.hpp"
#include "tests/calibrate/support/simulated_gpu.hpp"
#include "tests/run_program.hpp"
#include "tests/runtime/support/host_executor.hpp"
#include "tests/runtime/support/host_graphs.hpp"

namespace gpu_tasks_test {

using calibrate::GpuBench;
using calibrate::Record;
using costmodel::Linear;
using costmodel::Op;
using costmodel::Pass;
using costmodel::Precision;
using costmodel::Seconds;

namespace {

// Relative to the value, however small.
doctest::Approx about(double value) { return doctest::Approx(value).scale(0); }

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

// Small caches and few numbers.
GpuBench small_bench(runtime::Device& device, Precision precision) {
  return {device, precision, calibrate::wall_clock(), 4096, 4096};
}

std::vector<Record> records_of(const std::vector<GpuBench*>& benches,
                               const calibrate::GpuShapes& shapes) {
  calibrate::StopRule rule;
  rule.least = rule.most = 2;
  rule.longest = Seconds(0);
  std::vector<Record> all;
  for (const auto& task : calibrate::gpu_tasks(benches, shapes))
    for (auto& record : task.run(rule)) all.push_back(std::move(record));
  return all;
}

std::vector<Record> measured(runtime::Device& device) {
  GpuBench bench = small_bench(device, Precision::fp32);
  return records_of({&bench}, small_shapes());
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

// A calibration of a simulated GPU.
struct Calibrated {
  Calibrated(bool quick, Seconds budget) {
    const std::vector<GpuBench*> benches{&own, &wide, &half, &narrow};
    const program::Scratch scratch;
    calibrate::PartFile part((scratch.path() / "part").string(), "simulated");
    const auto spent = calibrate::measuring_clock(benches);
    calibrate::run_tasks(calibrate::gpu_tasks(benches, calibrate::gpu_shapes(quick)), budget, part,
                         spent, {});
    records = part.records();
    measuring = spent().value;
    filling = clock.now - measuring;
  }

  simulated_gpu::Clock clock;
  simulated_gpu::Device bf16{clock}, fp32{clock, Precision::fp32}, fp16{clock, Precision::fp16},
      fp8{clock, Precision::fp8};
  calibrate::Clock wall = simulated_gpu::wall_clock(clock);
  GpuBench own{bf16, Precision::bf16, wall}, wide{fp32, Precision::fp32, wall},
      half{fp16, Precision::fp16, wall}, narrow{fp8, Precision::fp8, wall};
  std::vector<Record> records;
  double measuring = 0, filling = 0;  // seconds
};

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
          about(r.time.median.value).epsilon(1e-4));
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
  CHECK(profile.graph_kernel_launch.value == about(replayed->time.median.value).epsilon(1e-5));
}

TEST_CASE("a launch costs what was recorded of it, with and without a graph") {
  const auto taking = [](double s) { return calibrate::Timing{Seconds(s), Seconds(s), 5, 0.01}; };
  const auto work =
      costmodel::measured_work(Linear{64, 128, 128, false, false}, Pass::forward, Precision::bf16);
  std::vector<Record> records{{"t", "linear", Pass::forward, work.point, work.amount, taking(2e-6)},
                              {"t", "copy", Pass::forward, {4e9}, 8e9, taking(2e-3)},
                              {"call", "call", Pass::forward, {1}, 1, taking(3.5e-6)}};
  const auto alone = read(records, Precision::bf16);
  CHECK(alone.kernel_launch.value == about(3.5e-6));
  CHECK(alone.graph_kernel_launch.value == 0);  // not measured, not said
  records.push_back({"call in a graph", "graph call", Pass::forward, {1}, 1, taking(1.25e-6)});
  const auto both = read(records, Precision::bf16);
  CHECK(both.kernel_launch.value == about(3.5e-6));
  CHECK(both.graph_kernel_launch.value == about(1.25e-6));
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
        about(2e-6).epsilon(1e-5));
  CHECK(!costmodel::measured_time(op, Pass::forward, device, Precision::fp32));
  CHECK(costmodel::measured_optimizer(costmodel::Bytes(4e6), device)->value ==
        about(1e-5).epsilon(1e-5));
  CHECK(device.memory_bandwidth.value == about(4e12));
  CHECK(device.multiprocessors == 132);
  CHECK(device.flex_dispatcher);  // of compute capability 9.0
  const std::string text = to_yaml(calibrate::gpu_profile(records, Precision::bf16, some_gpu(),
                                                          "2026-01-02", "shardplan calibrate x"));
  for (const char* said : {"2026-01-02", "A \\\"fast\\\" GPU", "CUDA 13.2", "CUDA 13.0",
                           "cuBLASLt 130100", "shardplan calibrate x"}) {
    CAPTURE(said);
    CHECK(text.find(said) != std::string::npos);
  }
}

TEST_CASE(
    "each operator of a scenario that the profile lacks is measured as a tensor rank has it") {
  runtime::CpuDevice cpu;
  GpuBench bench = small_bench(cpu, Precision::fp32);
  for (const int tp : {1, 2}) {
    for (const calibrate::SmallModel& model : small_shapes().models) {
      CAPTURE(tp);
      CAPTURE(model.name());
      const auto device = read(measured(cpu), Precision::fp32);
      calibrate::Subject subject{"small", calibrate::evaluator_of(model, device, Precision::fp32),
                                 calibrate::plan_of(model)};
      subject.plan.tp = tp;
      std::vector<Record> records;
      for (const auto& task : gpu_shape_tasks(bench, subject, device))
        for (auto& record : task.run({.least = 2, .most = 2, .longest = Seconds(0)}))
          records.push_back(std::move(record));
      CHECK(records.size() == lacking_shapes(subject, device).size());
      auto value = calibrate::gpu_profile(measured(cpu), Precision::fp32, some_gpu(), "2026-01-02",
                                          "shardplan calibrate x");
      note_shapes(value, records, "2026-01-03", "shardplan calibrate y");
      const std::string text = to_yaml(value);
      CHECK(text.find("shapes: \"2026-01-03: shardplan calibrate y\"") != std::string::npos);
      const auto after = costmodel::read_device(costmodel::parse_yaml(text, "mine.yaml"), "mine");
      CHECK(lacking_shapes(subject, after).empty());
    }
  }
}

TEST_CASE("no tensor is touched by the host, and every time is measured") {
  KernelDeviceOnHost<runtime::Bf16> device;  // the host's reading its memory would end this
  auto shapes = small_shapes();
  shapes.lengths = shapes.rows = {16};
  shapes.head_dims = {8};
  shapes.models = {shapes.models.front(), shapes.models.back()};
  GpuBench bench = small_bench(device, Precision::bf16);
  std::set<std::string> ops;
  for (const Record& r : records_of({&bench}, shapes)) {
    CHECK(r.time.median.value > 0);
    ops.insert(r.op);
  }
  for (const char* op : {"linear", "flash attention", "rmsnorm", "embedding", "cross-entropy",
                         "optimizer", "copy", "call"})
    CHECK(ops.count(op) == 1);
}

TEST_CASE("products are measured in other precisions, and each has a peak and tables") {
  calibrate::GpuShapes shapes;
  shapes.rows = {16, 32};
  shapes.sides = {16};
  shapes.vectors = {4096};
  shapes.other_rows = {16, 32};
  shapes.other_sides = {16, 64};
  KernelDeviceOnHost<runtime::Bf16> bf16, fp8(true);
  runtime::CpuDevice fp32;
  GpuBench own = small_bench(bf16, Precision::bf16), wide = small_bench(fp32, Precision::fp32),
           narrow = small_bench(fp8, Precision::fp8);
  const auto records = records_of({&own, &wide, &narrow}, shapes);
  CHECK(fp8.fp8_products() > 0);
  CHECK(bf16.fp8_products() == 0);
  const auto device = read(records, Precision::bf16);
  const Op op = Linear{32, 64, 16, false, false},
           norm = costmodel::Norm{32, 64, costmodel::Normalization::layernorm};
  for (const Precision p : {Precision::fp32, Precision::fp8}) {
    CAPTURE(to_string(p));
    CHECK(device.peak_of(p).value > 1);
    for (const Pass pass : {Pass::forward, Pass::input_gradient, Pass::weight_gradient}) {
      const auto time = costmodel::measured_time(op, pass, device, p);
      REQUIRE(time);
      const auto record = std::ranges::find_if(records, [&](const Record& r) {
        return r.op == "linear in " + std::string(to_string(p)) && r.pass == pass &&
               r.point == costmodel::measured_work(op, pass, p).point;
      });
      REQUIRE(record != records.end());
      CHECK(time->value == about(record->time.median.value).epsilon(1e-4));
    }
    // By formula: no table was measured.
    const double formula = costmodel::device_time(norm, Pass::forward, device, p).value;
    CHECK(formula > 0);
    CHECK(formula < 1);
  }
  CHECK(device.peak_of(Precision::bf16).value > 1);
  CHECK(device.peak_of(Precision::nvfp4).value == 0);
}

TEST_CASE("layers are measured first, and what is filled is not charged as measured") {
  simulated_gpu::Clock clock;
  simulated_gpu::Device device(clock);
  GpuBench bench(device, Precision::bf16, simulated_gpu::wall_clock(clock));
  const std::vector<GpuBench*> benches{&bench};
  const auto tasks = calibrate::gpu_tasks(benches, small_shapes());
  const auto first = [&](const char* word) {
    return std::ranges::find_if(tasks, [&](const auto& t) { return t.name.starts_with(word); }) -
           tasks.begin();
  };
  CHECK(first("flash attention") == 0);
  CHECK(first("gpt") < first("linear"));
  CHECK(first("linear") < first("vectors"));
  CHECK(first("vectors") < first("call"));
  const double begin = clock.now;
  const calibrate::Clock measuring = calibrate::measuring_clock(benches);
  // One row of a product: nearly all of its time is that of filling 3 GB.
  calibrate::GpuShapes shapes;
  shapes.rows = {1};
  shapes.sides = {32768};
  for (const auto& task : calibrate::gpu_tasks(benches, shapes))
    if (task.name.starts_with("linear")) task.run({.longest = Seconds(0)});
  const double filling = 6.0 * 32768 * 32768 / simulated_gpu::Clock::written;
  CHECK(measuring().value > 0);
  CHECK(clock.now - begin - measuring().value == about(filling).epsilon(0.1));
}

// The budget is the command's. Simulated times do not vary, so measuring takes the least that it
// can.
TEST_CASE("a calibration takes less than three minutes, a quick one less than one") {
  for (const bool quick : {false, true}) {
    CAPTURE(quick);
    const double budget = quick ? 30 : 120, most = quick ? 60 : 180;
    const double elsewhere = 15;  // libraries, contexts, and up to 4 s of warming up
    Calibrated gpu(quick, Seconds(budget));
    CAPTURE(gpu.measuring);
    CAPTURE(gpu.filling);
    CHECK(gpu.filling + budget + elsewhere < most);
    CHECK(gpu.filling < gpu.measuring / 10);
    CHECK(gpu.measuring < budget / 2);  // what times that vary need more is there
    CHECK(gpu.bf16.memory().most_held < 20e9);
  }
}

TEST_CASE("the profile predicts an iteration in every precision") {
  Calibrated gpu(true, Seconds(30));
  const auto device = read(gpu.records, Precision::bf16);
  calibrate::SmallModel model = calibrate::gpu_shapes(true).models.back();
  model.layers = 4;
  std::map<Precision, double> times;
  for (const Precision p : {Precision::bf16, Precision::fp32, Precision::fp16, Precision::fp8}) {
    auto evaluator = calibrate::evaluator_of(model, device, p);
    times[p] = evaluator.iteration_time(calibrate::plan_of(model)).value;
  }
  CHECK(times[Precision::bf16] > 1e-3);
  CHECK(times[Precision::bf16] < 1);
  CHECK(times[Precision::fp16] == about(times[Precision::bf16]).epsilon(0.1));
  CHECK(times[Precision::fp32] > 3 * times[Precision::bf16]);
  CHECK(times[Precision::fp32] < 20 * times[Precision::bf16]);
  CHECK(times[Precision::fp8] < times[Precision::bf16]);
  CHECK(times[Precision::fp8] > 0.4 * times[Precision::bf16]);
}

TEST_CASE("products are multiplied until the clocks have settled") {
  simulated_gpu::Clock clock;
  simulated_gpu::Device device(clock);
  GpuBench bench(device, Precision::bf16, simulated_gpu::wall_clock(clock));
  const double begin = clock.now;
  const auto settled = calibrate::settle_clocks(bench);
  CHECK(settled.settled);
  CHECK(settled.taken.value >= 1);
  CHECK(clock.now - begin < 1.5);
}

}  // namespace gpu_tasks_test
