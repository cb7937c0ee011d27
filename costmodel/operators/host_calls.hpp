// What the host of an eager layer does, as Megatron-LM with Transformer Engine runs it: calls that
// Python or autograd makes one by one, and launches that loops in C++ make. Counted in
// NVIDIA/Megatron-LM @d98e8a64dd and NVIDIA/TransformerEngine; the source of each count stands at
// it.
#pragma once

#include "costmodel/base/pass.hpp"
#include "costmodel/operators/op_list.hpp"
#include "costmodel/plan/expert_recipe.hpp"

namespace costmodel {

struct HostCalls {
  int calls = 0;     // of modules, operators and autograd nodes, each with its kernel
  int launches = 0;  // of further kernels from within a call
  HostCalls& operator+=(const HostCalls& o) {
    calls += o.calls;
    launches += o.launches;
    return *this;
  }
};

// What of a layer no shape of the op list shows.
struct LayerCalls {
  Dispatcher dispatcher = Dispatcher::alltoall;
  bool exchanges = false;  // ep > 1
  bool drops = false;      // tokens beyond a capacity
  bool padded = false;     // ... to which experts are padded
  bool narrow = false;     // operands of products are cast
  bool sigmoid = false;    // the router scores by it, and corrects its choice by a bias
  bool latent = false;     // attention comes from latent vectors
  bool fused_router = false;
  bool fused_rotary = true;
  int cp = 1;  // ranks along the ring of keys and values
};

// Of a pass of one operator.
HostCalls host_calls(const Node& node, Pass pass, const LayerCalls& layer);

// Of the functions that recompute so much of a layer, without what they run.
HostCalls checkpoint_calls(const OpList& list, Recomputed what);

}  // namespace costmodel
