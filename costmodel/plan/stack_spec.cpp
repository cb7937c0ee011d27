#include "costmodel/plan/stack_spec.hpp"

namespace costmodel {

Bytes reported_peak(Bytes peak, const StackMemory& memory) {
  if (memory.reported == ReportedMemory::device) return peak;
  const Bytes reserved = peak - memory.context;
  return memory.reported == ReportedMemory::reserved ? reserved
                                                     : reserved / (1 + memory.fragmentation);
}

}  // namespace costmodel
