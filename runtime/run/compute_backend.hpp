// The functions that `shardplan run` needs of a compute backend: what it refuses, creates and
// reports. Each backend is one file that fills in this table.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "costmodel/estimate/estimate.hpp"
#include "runtime/backend/device.hpp"
#include "runtime/backend/transport.hpp"
#include "runtime/devices/gpu_sensors.hpp"
#include "runtime/ranks/tensor_route.hpp"
#include "runtime/run/run_command.hpp"

namespace runtime {

struct ComputeBackend {
  bool on_gpus;
  // Throws ConfigError for a plan that the backend does not execute.
  void (*require_plan)(const RunRequest& request, const costmodel::ParallelPlan& plan);
  // Throws RunFault when this machine has less memory than its ranks (`here`) need, because a
  // machine out of memory kills arbitrary processes, not only the run.
  void (*require_memory)(const std::vector<int>& here, const costmodel::Estimate& predicted);
  // The report's notes on ranks and devices. Throws RunFault when no suitable devices exist.
  std::vector<std::string> (*notes_on_ranks)(const RunRequest& request,
                                             const costmodel::ParallelPlan& plan);
  std::unique_ptr<Device> (*device_of)(const RunRequest& request, const Transport& transport);
  // Watches the GPU of this rank while it runs; null when it has none.
  std::unique_ptr<GpuGauge> (*gauge_of)(const RunRequest& request, const Transport& transport);
  // How tensors travel between devices: directly or staged through host memory. `seen`: the device
  // that the engine uses, which wraps the backend's own.
  TensorWay (*way_of_tensors)(const RunRequest& request, const costmodel::ParallelPlan& plan,
                              Transport& transport, Device& device, Device& seen);
};

}  // namespace runtime
