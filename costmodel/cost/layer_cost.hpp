// What one layer costs one device for one micro-batch: the op list, priced.
#pragma once

#include "costmodel/cost/collective.hpp"
#include "costmodel/machine/cluster_spec.hpp"
#include "costmodel/operators/op_list.hpp"
#include "costmodel/plan/stack_spec.hpp"

namespace costmodel {

// The one accumulator of the cost model. Communication time is the exposed part; traffic is all of
// it.
struct Cost {
  Seconds compute;
  Seconds tp_comm;
  Seconds cp_comm;
  Seconds ep_comm;
  Flops model;
  Flops executed;
  Traffic traffic;
  int kernels = 0;
  Seconds time() const { return compute + tp_comm + cp_comm + ep_comm; }
  Cost& operator+=(const Cost& o);
  Cost operator+(const Cost& o) const;
  Cost operator*(double times) const;
};

struct LayerCost {
  Cost forward;
  Cost backward;                         // without recomputation
  Cost input_gradient, weight_gradient;  // the same where a schedule runs them apart
  Cost recompute;
  Footprint footprint;
  double weights = 0;          // parameters on this device
  double expert_weights = 0;   // of them, of experts
  double partial_weights = 0;  // of them, with gradients to be summed over the tensor ranks
  double largest_weights = 0;  // of its operators, the most that one holds
  int products = 0;            // operators with a matrix
};

// What prices a step, apart from the operator itself.
struct Pricing {
  const ClusterSpec* cluster = nullptr;
  GroupLayout tp_group, cp_group, ep_group, etp_group;
  Precision precision = Precision::bf16;
  Overlap overlap;
  bool backward_tp_overlap = false;
  Seconds kernel_launch;  // a kernel is never faster: host time, or a graph's from one to the next
  Seconds blocked;        // device idle after a kernel, where the host waits for each to end
  double elementwise_factor = 1;
  const GroupLayout& group_of(Axis axis) const;
  double accumulation_bytes =
      0;                        // moved for each weight by its gradient's accumulation, not hidden
  double attention_factor = 1;  // the framework's fused attention takes this many times the best
  Seconds collective_wait;      // added to every exposed collective: ranks do not arrive together
};

// Communication beside computation slows both: kernels of the collective take multiprocessors and
// bandwidth. The factor is the overlap coefficient 1.1256 measured by Galvatron (Miao et al. 2022,
// arXiv:2211.13878; the profile in PKU-DAIR/Hetu-Galvatron @cea12ffb146a).
inline constexpr double overlap_slowdown = 1.1256;

// What a collective of `alone` seconds adds to a computation of `window` seconds beside it: the
// part that sticks out, and the slow-down of the part that does not.
Seconds exposed_beside(Seconds alone, Seconds window, double slowdown = overlap_slowdown);

// The same when the collective is cut into `ranks` pieces that feed or drain the product
// (userbuffers; Isaev et al. 2023, Calculon): one piece is always exposed.
Seconds exposed_pipelined(Seconds alone, Seconds window, int ranks);

// Ring attention: of `transfers` blocks each travels beside the attention on the block before it;
// `alone` and `window` are those of all transfers and all blocks (one more).
Seconds exposed_ring(Seconds alone, Seconds window, int transfers);

// One step, as long as launching it takes no longer.
Cost price(const Step& step, const OpList& list, const Pricing& pricing);

// Kernels are launched by the host one after another: a pass is never faster than kernels · launch,
// unless replayed from a CUDA graph.
Cost price(const std::vector<Step>& steps, const OpList& list, const Pricing& pricing);

LayerCost layer_cost(const OpList& list, Recomputed what, const Pricing& pricing);

}  // namespace costmodel
