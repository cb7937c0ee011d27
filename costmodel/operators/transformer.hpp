// Model + plan -> the operators one device really executes for one micro-batch, layer by layer.
#pragma once

#include <cstdint>

#include "costmodel/model/model_spec.hpp"
#include "costmodel/operators/op_list.hpp"
#include "costmodel/plan/parallel_plan.hpp"
#include "costmodel/plan/stack_spec.hpp"

namespace costmodel {

enum class LayerKind { embedding, block, head, moe, encoder, decoder, decoder_embedding };
inline constexpr std::array<std::string_view, 7> layer_kind_names{
    "embedding", "block", "head", "mixture-of-experts", "encoder", "decoder", "decoder embedding"};

// How one layer is cut and run: everything of plan, training and stack that changes its operators.
struct LayerContext {
  int tp = 1;
  int cp = 1;
  ContextExchange cp_comm = ContextExchange::p2p;
  int ep = 1;
  int etp = 1;
  bool sequence_parallel = false;
  std::int64_t micro_batch = 1;       // b, sequences
  std::int64_t sequence = 0;          // s, tokens; of a model with an encoder, that one's
  std::int64_t decoder_sequence = 0;  // tokens of its decoder
  double element = 2;                 // storage bytes of an activation
  double saved_input = 0;  // of an element of a product's saved input, where it is narrower
  AttentionKernel attention = AttentionKernel::flash;
  bool fused_softmax = true;
  int fused_softmax_batches = 1;  // only when micro_batch · heads / t is a multiple of it
  bool triangular_softmax = false;
  bool fused_bias_activation = true;
  bool fused_bias_dropout_add = true;
  bool fused_cross_entropy = false;
  bool fp32_logits = false;
  int expert_group = 0;
  bool causal_skip = true;
};

// embedding: token (vocabulary-parallel) and position tables, dropout. block: attention and MLP
// with their norms and residuals. head: final norm, logits, loss; its weight is the tied table's
// copy or the output projection. Tensor parallelism after Shoeybi et al. 2019 (arXiv:1909.08053,
// section 3), sequence parallelism after Korthikanti et al. 2022 (arXiv:2205.05198, section 4.2.2).
// Context parallelism cuts the tokens of everything by cp and lets attention see the other ranks'
// keys and values as `cp_comm` says. moe: a block whose MLP is a mixture of experts, after
// Megatron's all-to-all dispatcher (GShard, Lepikhin et al. 2020, arXiv:2006.16668, section 3): a
// rank routes the tokens it has, sends each to its experts' ranks and gets the results back.
// encoder: a block whose attention has no causal mask. decoder_embedding: the encoder's final norm,
// whose result all decoder layers share, and the decoder's tokens looked up. decoder: attention to
// the decoder's tokens, attention to the encoder's output, MLP (Vaswani et al. 2017,
// arXiv:1706.03762, section 3.1); every layer makes keys and values of its own, and with sequence
// parallelism gathers that output itself (Megatron-LM, core/models/T5/t5_spec.py).
OpList build_layer(LayerKind kind, const ModelSpec& model, const LayerContext& context);

// Sum of weights_of over the list: parameters this device holds of the layer.
double weights_of(const OpList& list);

// Of them, those that every tensor rank holds but sees only a part of the tokens (sequence
// parallelism) or heads (norms of queries and keys) for: their gradients are summed over the tensor
// ranks (Megatron's finalize_model_grads.py): norms, biases added after a reduce-scatter,
// positions.
double partial_weights(const OpList& list, const LayerContext& context);

}  // namespace costmodel
