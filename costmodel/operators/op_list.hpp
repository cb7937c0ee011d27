// The operators of one layer on one device as a dataflow graph: which operator makes a tensor,
// which ones read it, and which ones save it for backward. All results for a layer are computed
// from this list.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "costmodel/operators/op.hpp"
#include "costmodel/operators/site.hpp"

namespace costmodel {

// mask: dropout mask, one byte per element. statistics: per-row values (norm means, log-sum-exp,
// token ids), which the published closed forms omit. beside: an activation that an operator
// produces and saves in addition to its output. shared: held once per stage for all layers that
// read it (an encoder's output). weight: made of a stored weight for one product, and again for its
// input gradient.
enum class TensorRole { activation, mask, statistics, beside, shared, weight };

struct TensorInfo {
  std::string_view name;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  double element_bytes = 2;
  TensorRole role = TensorRole::activation;
  int cast_of = -1;  // the tensor whose narrow copy this is, when the copy goes with it
  Bytes bytes() const {
    return Bytes(static_cast<double>(rows) * static_cast<double>(cols) * element_bytes);
  }
};

using TensorId = int;

// The modules of recomputation that a node belongs to, a set of bits. An activation inside an
// expert is also part of the experts.
enum class Region : unsigned {
  rest = 0,
  attention_core = 1,
  latent_up = 2,
  norm = 8,
  dense_mlp = 16,
  experts = 32,
  expert_activation = 4 | 32,
  shared_experts = 64 | 32
};

// What a CUDA graph of scopes captures (Megatron-LM, cuda_graph_scope).
enum class GraphScope { none, attention, mlp, router };

struct Node {
  Site site = Site::other;
  Op op;
  std::vector<TensorId> inputs;
  TensorId output = -1;
  std::vector<TensorId> saved;  // saved from forward to backward
  Region region = Region::rest;
  GraphScope scope = GraphScope::none;
  double frozen_bytes = 0;  // of a stored value of its matrix, when its weights are not trained
  bool frozen() const { return frozen_bytes > 0; }
  std::string_view name() const { return name_of(site); }
};

struct OpList {
  std::vector<TensorInfo> tensors;
  std::vector<Node> nodes;  // in execution order
  TensorId input = -1;      // from the previous layer; -1 for the embedding
  TensorId output = -1;
  bool adapted = false;       // only adapters are trained, see Node::frozen_bytes
  bool input_trained = true;  // whether anything before an adapted layer is, so that it passes on
                              // the gradient of its input
};

// By tensor, whether its gradient is computed: where a trained weight is before it, in the list or,
// of its input, in a layer before.
std::vector<bool> with_gradient(const OpList& list);

// As of the operator; a frozen one has no weight gradient.
bool has_pass(const Node& node, Pass pass);

// Of the weights of a frozen node, as stored; biases and norms in `element` bytes each.
Bytes frozen_weights(const Node& node, double element);

// One executed pass of one node.
struct Step {
  const Node* node;
  Pass pass;
  CollectiveKind collective =
      CollectiveKind::none;       // the collective, when the node is one or gathers its input again
  const Node* partner = nullptr;  // the adjacent product, which may overlap with the collective
  Pass partner_pass = Pass::forward;
  bool partner_independent = false;  // the product neither feeds the collective nor waits for it
};

std::vector<Step> forward_steps(const OpList& list);
// Derived from the list: nodes in reverse order, input gradient then weight gradient, collectives
// replaced by their conjugates.
std::vector<Step> backward_steps(const OpList& list);

// backward_steps in two parts, for schedules that split the backward: the weight gradients, and all
// other steps. A collective that would overlap with a product of the other part has no partner.
std::vector<Step> input_gradient_steps(const OpList& list);
std::vector<Step> weight_gradient_steps(const OpList& list);

// A set of regions.
enum class Recomputed : unsigned { nothing = 0, attention_core = 1, everything = ~0U };
bool is_recomputed(Region region, Recomputed what);

// The forward steps of the recomputed region, which run before backward. `stops`: they end where
// the last tensor is made that backward needs (torch.utils.checkpoint's early stop).
std::vector<Step> recompute_steps(const OpList& list, Recomputed what, bool stops = false);

}  // namespace costmodel
