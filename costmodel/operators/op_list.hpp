// The operators of one layer on one device, with the tensors between them: which operator makes a
// tensor, which read it, which keep it for backward. Everything the cost model says of a layer is a
// walk over this list.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "costmodel/operators/op.hpp"

namespace costmodel {

// mask: one byte an element from dropout. statistics: per-row figures (norm means, log-sum-exp,
// token ids), which the published closed forms leave out. beside: an activation that its operator
// makes and keeps beside its output. shared: of the stage, which holds it once for all layers that
// read it (an encoder's output).
enum class TensorRole { activation, mask, statistics, beside, shared };

struct TensorInfo {
  std::string_view name;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  double element_bytes = 2;
  TensorRole role = TensorRole::activation;
  Bytes bytes() const {
    return Bytes(static_cast<double>(rows) * static_cast<double>(cols) * element_bytes);
  }
};

using TensorId = int;

enum class Region { attention_core, rest };

struct Node {
  std::string_view name;
  Op op;
  std::vector<TensorId> inputs;
  TensorId output = -1;
  std::vector<TensorId> saved;  // kept from forward to backward
  Region region = Region::rest;
};

struct OpList {
  std::vector<TensorInfo> tensors;
  std::vector<Node> nodes;  // in execution order
  TensorId input = -1;      // from the previous layer; -1 for the embedding
  TensorId output = -1;
};

// One pass of one node, as executed.
struct Step {
  const Node* node;
  Pass pass;
  CollectiveKind collective =
      CollectiveKind::none;       // which collective, where the node is one or gathers again
  const Node* partner = nullptr;  // the product next to the collective, which may hide it
  Pass partner_pass = Pass::forward;
  bool partner_independent = false;  // the product neither feeds the collective nor waits for it
};

std::vector<Step> forward_steps(const OpList& list);
// Derived: nodes in reverse order, input gradient then weight gradient, collectives replaced by
// their conjugates.
std::vector<Step> backward_steps(const OpList& list);

// The two parts of backward_steps, for schedules that run them apart: the weight gradients, and all
// else. A collective that would run beside the other part's product has no partner.
std::vector<Step> input_gradient_steps(const OpList& list);
std::vector<Step> weight_gradient_steps(const OpList& list);

enum class Recomputed { nothing, attention_core, everything };

// What backward computes again before it starts: the forward steps of the recomputed region.
std::vector<Step> recompute_steps(const OpList& list, Recomputed what);

// Ids of the tensors kept between forward and backward of one micro-batch: what nodes outside the
// recomputed region save, and what enters the region; not what is shared.
std::vector<TensorId> kept_tensors(const OpList& list, Recomputed what);

struct Footprint {
  Bytes kept;                // by kept_tensors, all roles
  Bytes kept_activations;    // without statistics: what the published formulas count
  Bytes kept_for_weights;    // between input and weight gradient, where they run apart: inputs of
                             // the products and gradients of their outputs
  Bytes forward_transient;   // highest extra use during forward, above what is kept at that point
                             // and at the end
  Bytes backward_transient;  // highest extra use during backward, above `kept`: recomputed tensors,
                             // gradients, gathered inputs
};

// A walk over tensor lifetimes: forward tensors die after their last reader unless kept, gradients
// after their producer's backward. This is what an exact allocator without caching reaches.
Footprint footprint(const OpList& list, Recomputed what);

}  // namespace costmodel
