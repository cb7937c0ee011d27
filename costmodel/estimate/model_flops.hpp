// Model FLOPs of a layer: its matrix products, forward and backward, without recomputation.
#pragma once

#include "costmodel/base/units.hpp"
#include "costmodel/operators/op_list.hpp"
#include "costmodel/operators/transformer.hpp"

namespace costmodel {

// The two conventions in use: with attention in full (Narayanan et al. 2021, arXiv:2104.04473,
// equation 3), and with half of what a causal mask covers, as Megatron-LM's --log-throughput and
// NeMo count it (num_floating_point_operations in megatron/training/training.py: "seq_len / 2").
struct ModelFlops {
  Flops full, causal;

  ModelFlops& operator+=(const ModelFlops& o) {
    full += o.full;
    causal += o.causal;
    return *this;
  }
};
inline ModelFlops operator*(const ModelFlops& a, double n) { return {a.full * n, a.causal * n}; }

// Of the list of an unsharded layer. An encoder's attention and cross-attention have no mask.
ModelFlops model_flops(const OpList& list, LayerKind kind);

}  // namespace costmodel
