// What a rank computes on, as `shardplan run` sees it: what it refuses, makes and says. A backend
// is one file that fills this in.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "costmodel/estimate/evaluator.hpp"
#include "runtime/backend/device.hpp"
#include "runtime/backend/transport.hpp"
#include "runtime/ranks/tensor_route.hpp"
#include "runtime/run/run_command.hpp"

namespace runtime {

struct ComputeBackend {
  bool on_gpus;
  // Throws ConfigError for a plan that it does not execute.
  void (*require_plan)(const RunRequest& request, const costmodel::ParallelPlan& plan);
  // Throws RunFault where this machine has less memory than its ranks need. A machine that runs out
  // of memory ends any process, not only the run that is too large.
  void (*require_memory)(BackendKind backend, const costmodel::Estimate& predicted);
  // What a run's report says of ranks and devices. Throws RunFault where there are none that serve.
  std::vector<std::string> (*notes_on_ranks)(const RunRequest& request,
                                             const costmodel::ParallelPlan& plan);
  std::unique_ptr<Device> (*device_of)(const RunRequest& request, const Transport& transport);
  // Whether tensors go from device to device without the host. `seen` is the device as the engine
  // has it, around the backend's own.
  TensorWay (*way_of_tensors)(const RunRequest& request, const costmodel::ParallelPlan& plan,
                              Transport& transport, Device& device, Device& seen);
};

}  // namespace runtime
