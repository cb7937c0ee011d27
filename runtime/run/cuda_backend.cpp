#include "runtime/run/cuda_backend.hpp"

#include <fmt/format.h>

#include <unistd.h>
#include <array>
#include <string_view>

#include "costmodel/base/error.hpp"
#include "runtime/backend/cuda_library.hpp"
#include "runtime/devices/virtual_devices.hpp"
#include "runtime/ranks/launch.hpp"
#include "runtime/training/training_run.hpp"

namespace runtime {

using namespace costmodel;

namespace {

void require_for_gpus(const RunRequest& request, const ParallelPlan& plan) {
  if (splits_backward(plan.schedule)) {
    throw ConfigError(request.scenario.plan.mark_of("schedule"),
                      "schedules with split backward run on CPUs and emulated ranks only",
                      "use --backend threads, mpi, tcp or emulated, or schedule: 1f1b");
  }
  if (plan.pipelines() == 1) return;
  throw ConfigError(request.scenario.plan.mark_of("replicas"),
                    "replicas of unequal shares run on CPUs and emulated ranks only",
                    "use --backend threads, mpi, tcp or emulated");
}

std::string_view products_in(const RunRequest& request) {
  const Precision precision = request.scenario.training.precision;
  return precision == Precision::fp32 && request.tf32 ? "TF32" : to_string(precision);
}

// Ranks take the machine's GPUs round robin or, when GPUs are split, fill one after the other.
VirtualPlace place_of(const RunRequest& request, const Transport& transport) {
  const int number = one_of_several() ? local_rank() : transport.rank();
  return virtual_place(number, static_cast<int>(cuda_plugin().report().gpus.size()),
                       request.virtual_devices);
}

SmSplit split_of(const RunRequest& request, const Gpu& gpu) {
  return split_multiprocessors(sm_rule(gpu.compute_major, gpu.multiprocessors),
                               request.virtual_devices);
}

// Throws RunFault when the machine's GPUs cannot be split, or are too few, for the ranks.
void require_virtual_devices(const RunRequest& request, const ParallelPlan& plan,
                             const CudaReport& report) {
  if (request.virtual_devices == 1) return;
  if (one_of_several()) {
    throw RunFault(
        0,
        "virtual devices are parts of one process's GPU: start it without mpirun, srun or "
        "torchrun");
  }
  for (const Gpu& gpu : report.gpus) {
    if (const SmSplit split = split_of(request, gpu); !split.refused.empty())
      throw RunFault(0, fmt::format("{}: {}", gpu.name, split.refused));
  }
  const std::string refused =
      too_many_ranks(plan.devices(), static_cast<int>(report.gpus.size()), request.virtual_devices);
  if (!refused.empty()) throw RunFault(0, refused);
}

std::vector<std::string> notes_on_gpus(const RunRequest& request, const ParallelPlan& plan) {
  const CudaReport report = cuda_plugin().report();
  require_virtual_devices(request, plan, report);
  if (request.scenario.training.precision == Precision::fp8) {
    if (const std::string missing = fp8_missing(report.gpus); !missing.empty())
      throw RunFault(0, missing);
  }
  std::vector<std::string> notes;
  const auto gpus = static_cast<std::int64_t>(report.gpus.size());
  const std::int64_t here = one_of_several() ? 1 : plan.devices();
  if (request.virtual_devices > 1) {
    const SmSplit split = split_of(request, report.gpus.front());
    notes.push_back(
        fmt::format("a GPU is {} virtual devices of {} multiprocessors, which share its "
                    "memory's bandwidth; {} multiprocessors are left out",
                    split.devices, split.each, split.left));
  } else if (here > gpus) {
    notes.push_back(
        fmt::format("{} ranks share {} GPUs: times are those of taking turns", here, gpus));
  }
  notes.push_back(fmt::format("on {}; matrix products by cuBLASLt {} in {}",
                              report.gpus.front().name, report.versions.cublas,
                              products_in(request)));
  return notes;
}

std::unique_ptr<Device> gpu_of(const RunRequest& request, const Transport& transport) {
  const CudaPlugin& cuda = cuda_plugin();
  const VirtualPlace at = place_of(request, transport);
  const SmSplit split = split_of(request, cuda.report().gpus[static_cast<std::size_t>(at.gpu)]);
  return cuda.make_device({.index = at.gpu,
                           .number = format_of(request.scenario.training.precision),
                           .tf32 = request.tf32,
                           .fp8 = request.scenario.training.precision == Precision::fp8,
                           .parts = split.devices,
                           .multiprocessors = split.each,
                           .part = at.part});
}

const Gpu& gpu_at(const CudaReport& report, const RunRequest& request, const Transport& transport) {
  return report.gpus[static_cast<std::size_t>(place_of(request, transport).gpu)];
}

std::unique_ptr<GpuGauge> gauge_of_gpu(const RunRequest& request, const Transport& transport) {
  const CudaReport report = cuda_plugin().report();
  return std::make_unique<GpuGauge>(load_nvml(), gpu_at(report, request, transport).bus,
                                    Seconds(0.05));
}

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

// `seen`: the device that the engine uses, which wraps the GPU's own.
TensorWay way_by_nccl(const RunRequest& request, const ParallelPlan& plan, Transport& transport,
                      Device& device, Device& seen) {
  const CudaPlugin& cuda = cuda_plugin();
  const Gpu gpu = gpu_at(cuda.report(), request, transport);
  const auto& s = request.scenario;
  const std::string host = host_name();
  return tensor_way(
      {cuda.nccl_missing, cuda.make_fabric_id,
       [&](Device&, const FabricRequest& asked) { return cuda.make_fabric(device, asked); }},
      transport, seen, {host, machine_id(host), gpu.bus},
      FabricPlan(plan, lowered_schedule(plan, plan.micro_batches(s.training.global_batch)),
                 s.model.tie_embeddings),
      request.patience);
}

}  // namespace

const ComputeBackend& cuda_backend() {
  static const ComputeBackend backend{
      .on_gpus = true,
      .require_plan = require_for_gpus,
      .require_memory = [](const std::vector<int>&,
                           const Estimate&) {},  // a GPU out of memory throws by itself
      .notes_on_ranks = notes_on_gpus,
      .device_of = gpu_of,
      .gauge_of = gauge_of_gpu,
      .way_of_tensors = way_by_nccl};
  return backend;
}

}  // namespace runtime
