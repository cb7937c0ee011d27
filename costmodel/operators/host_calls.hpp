// What the host of an eager layer with experts does, as Megatron-LM with Transformer Engine runs
// it: calls that Python or autograd makes one by one, and launches that loops in C++ make. Counted
// in NVIDIA/Megatron-LM @d98e8a64dd and NVIDIA/TransformerEngine; the source of each count stands
// at it.
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

// What of the routing no shape of the op list shows.
struct RoutingCalls {
  Dispatcher dispatcher = Dispatcher::alltoall;
  bool exchanges = false;  // ep > 1
  bool drops = false;      // tokens beyond a capacity
  bool padded = false;     // ... to which experts are padded
};

// Of a pass of one operator. `narrow`: operands of products are cast.
HostCalls host_calls(const Node& node, Pass pass, bool narrow, const RoutingCalls& routing);

}  // namespace costmodel
