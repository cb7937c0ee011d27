// What optimizers that treat parameters unlike keep of a layer's parameters on one device, and the
// products that they compute with them: 8-bit Adam, Adafactor and Muon.
#pragma once

#include "costmodel/machine/cluster_spec.hpp"
#include "costmodel/operators/op_list.hpp"
#include "costmodel/operators/transformer.hpp"
#include "costmodel/plan/training_spec.hpp"

namespace costmodel {

// Of a layer's or a rank's parameters; `expert_`: the experts' among them.
struct OptimizerShare {
  Bytes moments, expert_moments;
  Seconds products, expert_products;  // of one step
  void add(const OptimizerShare& o, double times);
  bool operator==(const OptimizerShare&) const = default;
};

// Bytes of the moments of a matrix of rows x columns.
// adam8bit: a byte for each of two moments and 4 bytes for every block of 256 of them; tensors of
// fewer than 4,096 parameters keep 32 bits (bitsandbytes, optim/optimizer.py: Optimizer2State,
// min_8bit_size). adafactor: 4 bytes a row and a column. muon: a moment of `moment` bytes.
Bytes moments_of_matrix(double rows, double columns, Optimizer optimizer, double moment);

// The same of a table of an embedding or of output: for adam8bit two moments of 32 bits in an
// embedding (transformers, Trainer.create_optimizer), for muon two of `moment` bytes
// (Megatron-LM, core/optimizer: not for is_embedding_or_output_parameter).
Bytes moments_of_table(double rows, double columns, Optimizer optimizer, double moment);

// The same of a vector: two moments, of 32 bits for adam8bit if it is short; Adafactor keeps one.
Bytes moments_of_vector(double elements, Optimizer optimizer, double moment);

// Time of the Newton-Schulz iteration that makes a matrix of rows x columns orthogonal, in bf16:
// five times A = X·Xᵀ, B = b·A + c·A·A, X = a·X + B·X with X as wide as it is not tall (Jordan et
// al. 2024). 4 d² D + 2 d³ FLOPs each, d the shorter and D the longer side.
Seconds orthogonalization_time(double rows, double columns, const DeviceSpec& device);

// Of a layer. A device's part of a matrix that tensor parallelism cuts is a matrix of its own, as
// in Megatron-LM's --muon-tp-mode blockwise and in factored moments of local shards. The matrices
// of queries, keys and values are taken as one (--muon-no-split-qkv), like those of a gated MLP.
// `tied`: the output projection is the embedding's table. Nothing for optimizers that keep alike.
OptimizerShare optimizer_share(const OpList& list, LayerKind kind, bool tied,
                               const TrainingSpec& training, const DeviceSpec& device);

}  // namespace costmodel
