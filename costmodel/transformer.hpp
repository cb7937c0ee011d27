// Model + plan -> the operators one device really executes for one micro-batch, layer by layer.
#pragma once

#include <cstdint>

#include "costmodel/model_spec.hpp"
#include "costmodel/op_list.hpp"
#include "costmodel/parallel_plan.hpp"
#include "costmodel/stack_spec.hpp"

namespace costmodel {

enum class LayerKind { embedding, block, head };
inline constexpr std::array<std::string_view, 3> layer_kind_names{"embedding", "block", "head"};

// How one layer is cut and run: everything of plan, training and stack that changes its operators.
struct LayerContext {
  int tp = 1;
  int cp = 1;
  ContextExchange cp_comm = ContextExchange::p2p;
  bool sequence_parallel = false;
  std::int64_t micro_batch = 1;  // b, sequences
  std::int64_t sequence = 0;     // s, tokens
  double element = 2;            // storage bytes of an activation
  AttentionKernel attention = AttentionKernel::flash;
  bool fused_softmax = true;
  int fused_softmax_batches = 1;  // only when micro_batch · heads / t is a multiple of it
  bool fused_bias_activation = true;
  bool fused_bias_dropout_add = true;
  bool fused_cross_entropy = false;
  bool causal_skip = true;
};

// embedding: token (vocabulary-parallel) and position tables, dropout. block: attention and MLP
// with their norms and residuals. head: final norm, logits, loss; its weight is the tied table's
// copy or the output projection. Tensor parallelism after Shoeybi et al. 2019 (arXiv:1909.08053,
// section 3), sequence parallelism after Korthikanti et al. 2022 (arXiv:2205.05198, section 4.2.2).
// Context parallelism cuts the tokens of everything by cp and lets attention see the other ranks'
// keys and values as `cp_comm` says.
OpList build_layer(LayerKind kind, const ModelSpec& model, const LayerContext& context);

// Sum of weights_of over the list: parameters this device holds of the layer.
double weights_of(const OpList& list);

}  // namespace costmodel
