#include "calibrate/commands/gpu_command.hpp"

#include <fmt/format.h>

#include "calibrate/commands/gpu_tasks.hpp"
#include "calibrate/measure/gpu_sensors.hpp"
#include "calibrate/measure/machine.hpp"
#include "calibrate/profile/gpu_profile.hpp"
#include "costmodel/base/output_file.hpp"
#include "costmodel/config/yaml.hpp"
#include "runtime/backend/cuda_library.hpp"

namespace calibrate {

using costmodel::Seconds;

namespace {

// The header of the part file; measurements under another header are not reused.
std::string header_of(const CpuRequest& request, const runtime::CudaReport& report) {
  return fmt::format("shardplan calibrate --backend cuda{}; {}; driver {}; runtime {}; cuBLASLt {}",
                     request.quick ? " --quick" : "", report.gpus.front().name,
                     report.versions.driver, report.versions.runtime, report.versions.cublas);
}

}  // namespace

std::string calibrate_gpu(const CpuRequest& request) {
  constexpr auto precision = costmodel::Precision::bf16;
  const runtime::CudaPlugin& cuda = runtime::cuda_plugin();
  const runtime::CudaReport report = cuda.report();
  const auto device = cuda.make_device({.index = 0, .number = runtime::Number::bf16});
  const GpuBench bench{*device, precision, wall_clock()};
  const auto tasks = gpu_tasks(bench, gpu_shapes(request.quick));
  PartFile part(request.out + ".part", header_of(request, report));
  const Seconds begin = bench.clock();
  GpuGauge gauge(load_nvml(), report.gpus.front().bus, Seconds(0.2));
  run_tasks(tasks, Seconds(60 * request.minutes), part, bench.clock,
            [&](std::size_t done, const std::string& name, double left) {
              if (request.progress) request.progress(done, tasks.size(), name, left);
            });
  const auto profile = gpu_profile(part.records(), precision, report, this_machine().date,
                                   request.command, gauge.stop());
  costmodel::write_file(request.out, to_yaml(profile));
  part.remove();
  return fmt::format("{} measurements of {} ({} taken up) in {:.0f} s\n", part.records().size(),
                     report.gpus.front().name, part.taken_up(), (bench.clock() - begin).value);
}

}  // namespace calibrate
