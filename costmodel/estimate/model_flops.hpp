// FLOPs of a layer's matrix products, forward and backward, without recomputation.
#pragma once

#include "costmodel/base/units.hpp"
#include "costmodel/operators/op_list.hpp"
#include "costmodel/operators/transformer.hpp"

namespace costmodel {

// The two conventions in use for what a model needs: with attention in full (Narayanan et al. 2021,
// arXiv:2104.04473, equation 3), and with half of what a causal mask covers, as Megatron-LM's
// --log-throughput and NeMo count it (num_floating_point_operations in
// megatron/training/training.py: "seq_len / 2"). `executed` is what the kernels compute: a fused
// attention with a causal mask skips the masked half, and computes its scores again in the backward
// pass (Dao 2022, arXiv:2205.14135).
struct ModelFlops {
  Flops full, causal, executed;

  ModelFlops& operator+=(const ModelFlops& o) {
    full += o.full;
    causal += o.causal;
    executed += o.executed;
    return *this;
  }
};
inline ModelFlops operator*(const ModelFlops& a, double n) {
  return {a.full * n, a.causal * n, a.executed * n};
}

// Of the list of an unsharded layer. An encoder's attention and cross-attention have no mask.
ModelFlops model_flops(const OpList& list, LayerKind kind);

}  // namespace costmodel
