// When the tensors of a layer exist: what it keeps from forward to backward, its working sets, and
// every allocation in order.
#pragma once

#include <utility>
#include <vector>

#include "costmodel/operators/op_list.hpp"

namespace costmodel {

// Ids of the tensors that one micro-batch keeps between forward and backward: those that nodes
// outside the recomputed region save, and the inputs of the region; without shared tensors.
std::vector<TensorId> kept_tensors(const OpList& list, Recomputed what);

// What torchtitan's selective checkpoints keep of a layer by operator: the results of attention, of
// exchanges of experts and of every second product, as bytes of a node's output.
std::vector<std::pair<TensorId, Bytes>> alternate_tensors(const OpList& list);

// What of kept_tensors waits in host memory where `modules` (bits of OffloadModule) of a layer are
// sent there: large tensors that nothing but these saves.
Bytes sent_tensors(const OpList& list, Recomputed what, unsigned modules);

struct Footprint {
  Bytes kept;              // of kept_tensors, all roles
  Bytes kept_activations;  // without statistics, as the published formulas count
  Bytes kept_alternate;    // of a layer recomputed but for every second product and
                           // attention (torchtitan's selective checkpoints, by operator)
  Bytes kept_for_weights;  // kept between input and weight gradient when they are separate actions:
                           // the inputs of products and the gradients of their outputs
  Bytes forward_transient;   // highest additional use during forward, above the bytes kept at that
                             // point and at the end
  Bytes backward_transient;  // highest additional use during backward, above `kept`: recomputed
                             // tensors, gradients, gathered inputs
  // The operator at which each of the two is reached, by its place in the list; -1: before any.
  int forward_at = -1, backward_at = -1;
  bool in_recomputation = false;  // that of backward while its forward is computed again
};

// Computes the footprint from tensor lifetimes: a forward tensor is freed after its last reader
// unless kept, a gradient after its producer's backward. An exact allocator without caching would
// reach this.
Footprint footprint(const OpList& list, Recomputed what);

// What a pass allocates and frees.
struct TensorEvent {
  enum class What { tensor, gradient, temporary, weight_gradient };
  What what;
  int id;       // of the tensor, or of the one whose gradient it is; of a weight's, of the node
  Bytes bytes;  // taken; negative: given back. Of a weight's gradient: its elements
  int node;     // that runs
};

// The allocations of one micro-batch in a layer. The layer's input is allocated by the layer before
// and freed by this one; its output, and its input's gradient, are left to the neighbours.
struct LayerLifetimes {
  std::vector<TensorEvent> forward, backward;
  bool keeps_output = false;  // until backward; then the layer after does not free it
};
LayerLifetimes lifetimes(const OpList& list, Recomputed what);

}  // namespace costmodel
