// The cost of one layer on one device for one micro-batch: the priced op list.
#pragma once

#include "costmodel/cost/collective.hpp"
#include "costmodel/cost/expert_exchange.hpp"
#include "costmodel/cost/kernel_time.hpp"
#include "costmodel/cost/optimizer_step.hpp"
#include "costmodel/machine/cluster_spec.hpp"
#include "costmodel/operators/host_calls.hpp"
#include "costmodel/operators/lifetimes.hpp"
#include "costmodel/operators/transformer.hpp"
#include "costmodel/plan/stack_spec.hpp"

namespace costmodel {

// The accumulator of the cost model. Communication times are the exposed part only; traffic is
// complete.
struct Cost {
  Seconds compute;
  Seconds tp_comm;
  Seconds cp_comm;
  Seconds ep_comm;
  Flops model;
  Flops executed;
  Traffic traffic;
  // Of one pass; sums leave them out. Launches are kernels, or calls where those are counted.
  int kernels = 0, launches = 0;
  Seconds host;      // time of the launches
  Seconds waited;    // of compute: the device waits for them
  Seconds ep_slack;  // of ep_comm: what other work may hide, for the host has launched it by then
  Seconds hidden;    // communication beside computation, which a higher clock shortens for nothing
  void hide_exchange(Seconds time);  // so much of ep_comm
  Seconds time() const { return compute + tp_comm + cp_comm + ep_comm; }
  Cost& operator+=(const Cost& o);
  void add(const Cost& o, double times);  // o, so many times
  Cost operator+(const Cost& o) const;
};

struct LayerCost {
  Cost forward;
  Cost backward;                         // excludes recomputation
  Cost input_gradient, weight_gradient;  // its two parts, for schedules that split the backward
  Cost recompute;
  Footprint footprint;
  double weights = 0;                 // trained parameters on this device
  double expert_weights = 0;          // expert parameters among them
  double partial_weights = 0;         // those whose gradients are summed over the tensor ranks
  double largest_weights = 0;         // the largest number in one operator
  int products = 0;                   // operators with a weight matrix
  int tensors = 0;                    // trained parameter tensors where no products are joined
  std::vector<MatrixShape> matrices;  // where the stack has a dummy gradient for each shape
  double dummy_gradients = 0;         // elements of these
  Seconds weight_casts;               // once an iteration, of weights that are kept narrow
  OptimizerShare optimizer;           // of optimizers that treat parameters unlike
  // With adapters: of weights that are not trained, which `weights` are without.
  Bytes frozen, frozen_experts, largest_frozen;
  Cost first_backward;  // as `backward`, of a model's first layer
  // With packed samples: the time of attention, which grows with their lengths; `backward` with
  // recomputation.
  Seconds attention_forward, attention_backward;
};

// The inputs to the price of a step, except the operator itself.
struct Pricing {
  const ClusterSpec* cluster = nullptr;
  GroupLayout tp_group, cp_group, ep_group, etp_group;
  Precision precision = Precision::bf16;
  Overlap overlap;
  bool backward_tp_overlap = false;
  Seconds kernel_launch;  // minimum time per kernel: the host's launch, or a graph's replay
  Seconds recomputed;     // added to that in a recomputation
  Seconds blocked;        // idle time after a kernel, when the host waits for each kernel to end
  double elementwise_factor = 1;
  double permute_factor = 1;
  const GroupLayout& group_of(Axis axis) const;
  // The time of the framework's kernel relative to the device's best.
  double factor_of(const Op& op) const;
  double accumulation_bytes = 0;  // bytes moved per weight to accumulate its gradient, exposed
  double attention_factor = 1;    // time of the framework's fused attention relative to the best
  Seconds collective_wait;  // added to exposed collectives: ranks do not arrive at the same time
  ExpertRouting routing;
  Seconds tensor_host;                 // host time of a tensor-parallel collective
  Seconds dropless_host;               // least time of a layer's forward per local expert
  bool shared_expert_overlap = false;  // shared experts compute beside dispatch and combine
  const KernelSet* kernels = nullptr;  // the framework's kernels between the products; null: by the
                                       // operators' own passes and elementwise_factor
  bool checkpoint_stops = false;       // see StackMemory
  bool keeps_narrow_weights = false;
  Seconds host_call;  // where the calls of a layer are counted; 0: they are not
  LayerCalls layer_calls;
};

// Whether a group's collectives can go through user buffers, which live in one NVLink domain: it
// does not cross the outermost tier of a larger network.
bool in_one_domain(const GroupLayout& group, const ClusterSpec& cluster);

// The time that a collective of `alone` seconds adds to a concurrent computation of `window`
// seconds: the part that exceeds the window, and the slowdown of the part that overlaps.
Seconds exposed_beside(Seconds alone, Seconds window, double slowdown = overlap_slowdown);

// The same for a collective split into `ranks` pieces that feed or drain the product (userbuffers;
// Isaev et al. 2023, Calculon): one piece is always exposed.
Seconds exposed_pipelined(Seconds alone, Seconds window, int ranks,
                          double slowdown = overlap_slowdown);

// The same for ring attention: each of `transfers` blocks is sent during the attention on the
// previous block. `alone` is the time of all transfers, `window` that of all transfers + 1 blocks.
Seconds exposed_ring(Seconds alone, Seconds window, int transfers,
                     double slowdown = overlap_slowdown);

// What a step launches: the operator's own kernels, those of the framework around it, and the
// accumulation of a weight gradient. Their times add up to the computation of price(step).
struct StepKernels {
  std::array<KernelTime, 4> all;
  std::size_t number = 0;
  void add(const KernelTime& kernels) { all[number++] = kernels; }
  const KernelTime* begin() const { return all.data(); }
  const KernelTime* end() const { return all.data() + number; }
};
StepKernels step_kernels(const Step& step, const Pricing& pricing);

// The cost of one step, assuming that its launch is no bottleneck.
Cost price(const Step& step, const OpList& list, const Pricing& pricing);

// The cost of a pass. The host launches its kernels one after another, so a pass takes at least
// kernels · launch, unless a CUDA graph replays it.
Cost price(const std::vector<Step>& steps, const OpList& list, const Pricing& pricing);

LayerCost layer_cost(const OpList& list, Recomputed what, const Pricing& pricing);

}  // namespace costmodel
