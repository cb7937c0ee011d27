#include "costmodel/plan/stack_spec.hpp"

#include "costmodel/machine/cluster_spec.hpp"
#include "costmodel/model/model_spec.hpp"

namespace costmodel {

Bytes workspaces(const ModelSpec& model, const DeviceSpec& device, const StackMemory& stack) {
  return device.workspace * (stack.workspaces + (model.experts > 0 ? stack.expert_workspaces : 0));
}

CountedPeak counted_peak(Bytes peak, const StackMemory& memory, Bytes workspaces) {
  const Bytes tensors = peak - memory.context, reserved = tensors + workspaces;
  return {tensors / (1 + memory.fragmentation) + workspaces, reserved, reserved};
}

}  // namespace costmodel
