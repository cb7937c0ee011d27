#include "costmodel/plan/stack_spec.hpp"

namespace costmodel {

Bytes reported_peak(Bytes peak, const StackSpec& stack) {
  if (stack.reported == ReportedMemory::device) return peak;
  const Bytes reserved = peak - stack.context;
  return stack.reported == ReportedMemory::reserved ? reserved
                                                    : reserved / (1 + stack.fragmentation);
}

}  // namespace costmodel
