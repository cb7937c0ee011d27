#include "costmodel/plan/stack_spec.hpp"

namespace costmodel {

CountedPeak counted_peak(Bytes peak, const StackMemory& memory) {
  const Bytes reserved = peak - memory.context;
  return {reserved / (1 + memory.fragmentation), reserved, reserved};
}

}  // namespace costmodel
