// Builds the op list of a layer from model and plan: what one device executes for one micro-batch.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "costmodel/model/model_spec.hpp"
#include "costmodel/model/tower.hpp"
#include "costmodel/operators/op_list.hpp"
#include "costmodel/plan/fine_tuning.hpp"
#include "costmodel/plan/parallel_plan.hpp"
#include "costmodel/plan/stack_spec.hpp"

namespace costmodel {

// What an op list is of: a block, what stands at an end of a model or between its parts, or a part
// of a tower.
enum class Part : std::uint8_t {
  block,
  embedding,
  head,
  decoder_embedding,
  mtp_start,
  tower_stem,
  tower_layer,
  projector,
  branch
};

struct LayerKind {
  Part part = Part::block;
  Block its;               // of Part::block; of a tower's layers Mixer::window or attention
  std::uint8_t tower = 0;  // its TowerInput
  constexpr LayerKind(Block own) : its(own) {}  // NOLINT(google-explicit-constructor)
  constexpr explicit LayerKind(Part other) : part(other) {}
  constexpr LayerKind(Part other, std::size_t of, Mixer mixer = Mixer::attention)
      : part(other), its{mixer, FeedForward::dense}, tower(static_cast<std::uint8_t>(of)) {}
  auto operator<=>(const LayerKind&) const = default;
  constexpr bool of_tower() const { return part >= Part::tower_stem; }
  constexpr bool is_end() const {
    return part != Part::block && part != Part::mtp_start && !of_tower();
  }
  // A number of its own.
  constexpr std::int64_t code() const {
    return static_cast<std::int64_t>(tower) << 24 | static_cast<std::int64_t>(part) << 16 |
           static_cast<std::int64_t>(its.mixer) << 8 | static_cast<std::int64_t>(its.feed_forward);
  }
  static const LayerKind embedding, block, moe, encoder, decoder, head, decoder_embedding,
      mtp_start;
};
inline constexpr LayerKind LayerKind::embedding{Part::embedding};
inline constexpr LayerKind LayerKind::block{Block{}};
inline constexpr LayerKind LayerKind::moe{Block{Mixer::attention, FeedForward::experts}};
inline constexpr LayerKind LayerKind::encoder{Block{Mixer::encoder, FeedForward::dense}};
inline constexpr LayerKind LayerKind::decoder{Block{Mixer::decoder, FeedForward::dense}};
inline constexpr LayerKind LayerKind::head{Part::head};
inline constexpr LayerKind LayerKind::decoder_embedding{Part::decoder_embedding};
inline constexpr LayerKind LayerKind::mtp_start{Part::mtp_start};

// The parts of a model's towers in the order in which they run, and how many there are of each.
struct TowerLayers {
  LayerKind kind;
  int number = 0;
};
std::vector<TowerLayers> tower_layers(const ModelSpec& model);

// "embedding", or what describe() has of a block.
std::string describe(LayerKind kind);

// Everything in plan, training and stack that changes the operators of a layer.
struct LayerContext {
  int tp = 1;
  int cp = 1;
  ContextExchange cp_comm = ContextExchange::p2p;
  int ep = 1;
  int etp = 1;
  bool sequence_parallel = false;
  std::int64_t micro_batch = 1;       // b, sequences
  std::int64_t sequence = 0;          // s, tokens; with an encoder, the encoder's
  std::int64_t decoder_sequence = 0;  // tokens of the decoder
  double element = 2;                 // storage bytes of an activation element
  bool operands_of_8_bits = false;    // of products: fp8, mxfp8
  bool one_scale = false;             // fp8: of a tensor, whose transpose has the same values
  bool keeps_narrow_weights = false;  // trained ones: no pass casts them
  double saved_input = 0;             // bytes of a product's saved input element; 0: `element`
  AttentionKernel attention = AttentionKernel::flash;
  bool attention_as_measured = false;  // see FlashAttention
  bool fused_softmax = true;
  int fused_softmax_batches = 1;  // only if micro_batch · heads / t is a multiple of it
  bool triangular_softmax = false;
  bool fused_bias_activation = true;
  bool fused_bias_dropout_add = true;
  LossKernel loss = LossKernel::unfused;
  bool fp32_logits = false;
  int expert_group = 0;
  bool causal_skip = true;
  Dispatcher dispatcher = Dispatcher::alltoall;
  double expert_load = 1;     // rows of the fullest rank's experts relative to the mean
  double exchanged_load = 1;  // ... of those that it receives and sends back
  Seconds expert_start;       // time that every local expert adds to a grouped product
  bool fused_grouped_mlp = false;
  bool unfused_expert_bias = false;  // see StackExperts
  bool shared_overlap = false;       // the shared experts compute while rows are exchanged
  bool narrow_attention = false;     // products of attention in fp8, its operands kept in fp8
  FineTuning tuning;
  TowerUse towers;
  double attended = 0;                 // see FlashAttention
  bool scales_adapter_output = false;  // see AdapterSum
  const KernelSet* kernels = nullptr;  // what they keep for backward; null: by the op list
};

// Builds the op list of one layer. Tensor parallelism follows Shoeybi et al. 2019
// (arXiv:1909.08053, section 3), sequence parallelism Korthikanti et al. 2022 (arXiv:2205.05198,
// section 4.2.2). Context parallelism divides all tokens by cp; attention reads the other ranks'
// keys and values by `cp_comm`.
//
//   embedding  token (vocabulary-parallel) and position tables, dropout
//   block      mixer and feed-forward with their norms and residuals. Experts have Megatron's
//              all-to-all dispatcher (GShard, Lepikhin et al. 2020, arXiv:2006.16668, section 3): a
//              rank routes its tokens, sends each to the ranks of its experts and receives the
//              results. A decoder's has self-attention, cross-attention to the encoder's output and
//              an MLP (Vaswani et al. 2017, arXiv:1706.03762, section 3.1); every layer projects
//              its own keys and values, and with sequence parallelism gathers the encoder's output
//              (Megatron-LM, core/models/T5/t5_spec.py).
//   head       final norm, logits, loss; its weight is the copy of the tied table, or the output
//              projection
//   decoder_embedding
//              the encoder's final norm, whose result all decoder layers share, and the lookup of
//              the decoder's tokens
//   tower_..., projector, branch
//              of a tower, for all inputs of a micro-batch: tensor parallelism cuts its layers
//              where it divides their heads and widths, else every tensor rank has all of them;
//              neither sequence nor context parallelism cuts its tokens (Megatron-LM,
//              examples/multimodal/model.py). A frozen part keeps nothing and has no backward
//   mtp_start  what stands before a layer of multi-token prediction (DeepSeek-V3, arXiv:2412.19437,
//              equation 21): the next tokens' embedding, two norms, and a projection of 2h to h
OpList build_layer(LayerKind kind, const ModelSpec& model, const LayerContext& context);

// Sum of weights_of over the list: the parameters of the layer on this device.
double weights_of(const OpList& list);

// Those parameters that every tensor rank holds, but computes gradients for on only a part of the
// tokens (sequence parallelism) or of the heads (norms of queries and keys), so that their
// gradients are all-reduced over the tensor ranks (Megatron's finalize_model_grads.py): norms,
// biases added after a reduce-scatter, position tables.
double partial_weights(const OpList& list, const LayerContext& context);

// Rows and columns of a matrix that a layer trains; an expert's is one of its own.
using MatrixShape = std::pair<std::int64_t, std::int64_t>;
std::vector<MatrixShape> trained_matrices(const OpList& list);
// Their elements, those of one shape counted once.
double elements_by_shape(std::vector<MatrixShape> shapes);

}  // namespace costmodel
