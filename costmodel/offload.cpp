#include "costmodel/estimate.hpp"

// Activations kept in host memory: what does not fit is sent there in forward and fetched in
// backward, layer by layer, beside the computation (Transformer Engine's get_cpu_offload_context;
// Megatron-LM's --cpu-offloading-num-layers, whose rules are those below).
#include <algorithm>
#include <cmath>

#include "costmodel/plan_shape.hpp"

namespace costmodel {

void Evaluator::price_offload(const ParallelPlan& plan) {
  PlanCost& c = cost_;
  c.offloaded_layers = 0;
  c.offload_exposed = Seconds(0);
  const BytesPerSecond link = cluster_.device.host_bandwidth;
  const bool allowed = training_.stack.activation_offload && plan.zero == 3 && plan.pp == 1 &&
                       plan.recompute.granularity == Recomputation::none && link.value > 0;
  if (!allowed || c.peak <= cluster_.device.memory || model_.layers < 2 || model_.mixes_layers())
    return;
  const LayerKind kind = model_.experts > 0 ? LayerKind::moe : LayerKind::block;
  const LayerCost& block = layer(kind, plan, Recomputed::nothing);
  const double reserved = 1 + training_.stack.fragmentation;
  const double needed = (c.peak - cluster_.device.memory) / (block.footprint.kept * reserved);
  const double most = static_cast<double>(model_.layers) - 1;
  c.offloaded_layers = static_cast<int>(std::min(std::ceil(needed), most));
  const Bytes away = block.footprint.kept * static_cast<double>(c.offloaded_layers);
  StageMemory& s = c.memory.front();
  s.activations -= away;
  s.buffers -= away * training_.stack.fragmentation;
  c.peak = s.total();
  // A layer's activations leave while the next is computed, and come back likewise.
  const Seconds transfer = block.footprint.kept / link;
  const auto layers = static_cast<double>(c.offloaded_layers);
  const Seconds forward = layers * max(Seconds(0), transfer - block.forward.time());
  const Seconds backward = layers * max(Seconds(0), transfer - block.backward.time());
  c.offload_exposed = forward + backward;
  c.times.forward.front() += forward;
  c.times.backward.front() += backward;
}

}  // namespace costmodel
