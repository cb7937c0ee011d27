#include "calibrate/commands/gpu_command.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "calibrate/commands/for_command.hpp"
#include "calibrate/commands/gpu_tasks.hpp"
#include "calibrate/measure/machine.hpp"
#include "calibrate/profile/gpu_profile.hpp"
#include "costmodel/base/output_file.hpp"
#include "costmodel/config/yaml.hpp"
#include "costmodel/machine/device_reader.hpp"
#include "runtime/backend/cuda_library.hpp"
#include "runtime/devices/gpu_sensors.hpp"

namespace calibrate {

using namespace costmodel;

namespace {

// The header of the part file; measurements under another header are not reused.
std::string header_of(const CpuRequest& request, const runtime::CudaReport& report) {
  return fmt::format(
      "shardplan calibrate --backend cuda{}{}, caches cold; {}; driver {}; runtime {}; cuBLASLt {}",
      request.quick ? " --quick" : "", shapes_asked(request), report.gpus.front().name,
      report.versions.driver, report.versions.runtime, report.versions.cublas);
}

// The first GPU as a device in each precision, the first of which is measured completely.
class Benches {
 public:
  Benches(const runtime::CudaPlugin& cuda, const runtime::CudaReport& report) {
    add(cuda, Precision::bf16);
    add(cuda, Precision::fp32);
    add(cuda, Precision::fp16);
    if (runtime::fp8_missing({report.gpus.front()}).empty()) add(cuda, Precision::fp8);
    for (const auto& bench : benches_) all_.push_back(bench.get());
  }
  std::span<GpuBench* const> all() const { return all_; }
  GpuBench& in(Precision precision, const runtime::CudaReport& report) const {
    const auto found = std::ranges::find(all_, precision, &GpuBench::precision);
    if (found != all_.end()) return **found;
    throw runtime::RunFault(0, runtime::fp8_missing({report.gpus.front()}));
  }

 private:
  void add(const runtime::CudaPlugin& cuda, Precision precision) {
    devices_.push_back(cuda.make_device(
        {.index = 0, .number = runtime::format_of(precision), .fp8 = precision == Precision::fp8}));
    benches_.push_back(std::make_unique<GpuBench>(*devices_.back(), precision, wall_clock()));
  }

  std::vector<std::unique_ptr<runtime::Device>> devices_;
  std::vector<std::unique_ptr<GpuBench>> benches_;  // destroyed before their devices
  std::vector<GpuBench*> all_;
};

// Lines of the report: the driver, clocks and power while it was measured.
std::string state_text(const std::vector<std::pair<std::string, std::string>>& state) {
  std::string text;
  for (const auto& [name, value] : state) text += fmt::format("{}: {}\n", name, value);
  return text;
}

std::string settled_text(const Settled& clocks) {
  return clocks.settled ? fmt::format("settled after {:.1f} s of products", clocks.taken.value)
                        : fmt::format("not settled after {:.1f} s of products", clocks.taken.value);
}

}  // namespace

std::string calibrate_gpu(const CpuRequest& request) {
  std::optional<Subject> subject;
  if (!request.scenario.empty())
    subject = subject_of(request.scenario, request.path, runtime::backend_named("cuda"));
  std::optional<Profile> given;
  if (!request.profile.empty()) given = profile_named(request.profile, request.path);
  require_writable(request.out);  // which is not one of these
  const runtime::CudaPlugin& cuda = runtime::cuda_plugin();
  const runtime::CudaReport report = cuda.report();
  if (given) require_measured_on(*given, report.gpus.front().name);
  const Clock clock = wall_clock();
  const Seconds begin = clock();
  const Benches benches(cuda, report);
  GpuBench& bench = *benches.all().front();
  PartFile part(request.out + ".part", header_of(request, report));
  const std::string settled = settled_text(settle_clocks(bench));
  runtime::GpuGauge gauge(runtime::load_nvml(), report.gpus.front().bus, Seconds(0.2));
  const Clock measuring = measuring_clock(benches.all());
  const Seconds asked(60 * request.minutes);
  const auto run = [&](const std::vector<Task>& tasks, Seconds time) {
    run_tasks(tasks, time, part, measuring,
              [&](std::size_t done, const std::string& name, double left) {
                if (request.progress) request.progress(done, tasks.size(), name, left);
              });
  };
  std::vector<std::pair<std::string, std::string>> state;
  const auto measured = [&] {
    return gpu_profile(part.records(), bench.precision, report, this_machine().date,
                       request.command, state);
  };
  if (!given)
    run(gpu_tasks(benches.all(), gpu_shapes(request.quick)), asked * (subject ? 0.75 : 1));
  if (subject) {
    const DeviceSpec known = given ? given->device : read_device(measured(), request.out);
    request.message(lacking_text(lacking_shapes(*subject, known), subject->precision(),
                                 given ? given->name : "the grid", subject->name));
    run(gpu_shape_tasks(benches.in(subject->precision(), report), *subject, known),
        max(asked - measuring(), asked * 0.25));
  }
  state = gauge.stop();
  state.emplace_back("clocks", settled);
  state.emplace_back("event_pair_s", fmt::format("{:.3g}", bench.timer.event_pair().value));
  Value profile = given ? given->value : measured();
  if (subject) note_shapes(profile, part.records(), this_machine().date, request.command);
  write_file(request.out, to_yaml(profile));
  part.remove();
  return fmt::format(
      "{} measurements of {} ({} taken up) in {:.0f} s, {:.0f} s of them measuring\n{}",
      part.records().size(), report.gpus.front().name, part.taken_up(), (clock() - begin).value,
      measuring().value, state_text(state));
}

}  // namespace calibrate
