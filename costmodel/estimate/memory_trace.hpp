// The memory of the fullest rank over three iterations, allocation by allocation: what a framework
// allocates and frees for each operator, and what its caching allocator reserves for that. Exact
// where memory.hpp has closed forms; for reports, not for searches.
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "costmodel/estimate/plan_cost.hpp"
#include "costmodel/estimate/plan_inputs.hpp"

namespace costmodel {

enum class MemoryKind { weights, gradients, optimizer, activations, buffers };
inline constexpr std::array<std::string_view, 5> memory_kind_names{
    "weights", "gradients", "optimizer", "activations", "buffers"};

// The fullest moment of a layer's pass, in the last iteration.
struct MemorySample {
  enum class Pass { forward, backward, step };
  Pass pass = Pass::forward;
  LayerKind layer = LayerKind::block;
  int stage = 0, micro_batch = 0, number = 0;        // number: of the layer in its stage
  std::string_view op;                               // that runs; empty: between operators
  Seconds begin, end;                                // of the pass, from the iteration's begin
  std::array<Bytes, memory_kind_names.size()> held;  // by MemoryKind
  Bytes allocated, reserved;
};

struct MemoryTrace {
  std::vector<MemorySample> samples;  // in order
  std::size_t peak = 0;               // the sample with most allocated
  Bytes allocated, reserved;          // the most of all iterations
  bool known() const { return !samples.empty(); }
};

// Of plans whose ranks run forwards and unsplit backwards by a generated schedule one way, of
// stages with equal sizes; of others nothing is known. A long schedule is followed until it
// repeats.
MemoryTrace memory_trace(const PlanInputs& in, const PlanCost& cost);

}  // namespace costmodel
