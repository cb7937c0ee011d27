#include "runtime/run/cpu_backend.hpp"

#include <fmt/format.h>

#include <thread>

#include "costmodel/base/unit_text.hpp"
#include "runtime/cpu/gemm.hpp"
#include "runtime/devices/cpu_device.hpp"
#include "runtime/run/free_memory.hpp"

namespace runtime {

using namespace costmodel;

namespace {

// Refuses runs that do not fit: a machine out of memory kills arbitrary processes, not only the
// run.
void require_free_memory(const std::vector<int>& here, const Estimate& predicted) {
  const costmodel::Bytes needed = memory_of_ranks(predicted, here);
  const auto free = free_memory();
  if (!free || needed <= *free) return;
  throw RunFault(0, fmt::format("{} of this plan {}, and this machine has {} left; choose a "
                                "smaller model or batch, more machines, or --backend emulated, "
                                "which waits where others compute",
                                here.size() == 1 ? "1 rank" : fmt::format("{} ranks", here.size()),
                                (here.size() == 1 ? "holds " : "hold ") + format_bytes(needed),
                                format_bytes(*free)));
}

std::vector<std::string> notes_on_cores(const RunRequest&, const ParallelPlan& plan) {
  std::vector<std::string> notes;
  if (plan.pipelines() > 1) {
    notes.emplace_back(
        "every group runs on this machine's cores, whatever devices it is predicted for; its "
        "gradients are reduced after the backward");
  }
  const auto cores = static_cast<std::int64_t>(std::thread::hardware_concurrency());
  if (cores > 0 && plan.devices() > cores) {
    notes.push_back(fmt::format("{} ranks share {} cores: times are those of taking turns",
                                plan.devices(), cores));
  }
  notes.push_back(fmt::format("matrix products by {}", cpu::gemm_provider()));
  return notes;
}

}  // namespace

const ComputeBackend& cpu_backend() {
  static const ComputeBackend backend{
      .on_gpus = false,
      .require_plan = [](const RunRequest&, const ParallelPlan&) {},
      .require_memory = require_free_memory,
      .notes_on_ranks = notes_on_cores,
      .device_of = [](const RunRequest&, const Transport&) -> std::unique_ptr<Device> {
        return std::make_unique<CpuDevice>();
      },
      .gauge_of = [](const RunRequest&, const Transport&) { return std::unique_ptr<GpuGauge>(); },
      .way_of_tensors = [](const RunRequest&, const ParallelPlan&, Transport&, Device&,
                           Device&) { return TensorWay(); }};
  return backend;
}

}  // namespace runtime
