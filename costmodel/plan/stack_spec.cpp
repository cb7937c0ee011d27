#include "costmodel/plan/stack_spec.hpp"

namespace costmodel {

CountedPeak counted_peak(Bytes peak, const StackMemory& memory, Bytes workspaces) {
  const Bytes tensors = peak - memory.context, reserved = tensors + workspaces;
  return {tensors / (1 + memory.fragmentation) + workspaces, reserved, reserved};
}

}  // namespace costmodel
