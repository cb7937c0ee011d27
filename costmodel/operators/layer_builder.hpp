// Builds the op list of one layer, node by node; transformer.cpp, attention.cpp and experts.cpp say
// which. Of use inside costmodel only.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "costmodel/operators/transformer.hpp"

namespace costmodel {

class LayerBuilder {
 public:
  // `context.sequence` is the layer's own; a decoder's cross-attention sees `encoder_sequence`.
  LayerBuilder(const ModelSpec& model, const LayerContext& context,
               std::int64_t encoder_sequence = 0);
  OpList embedding();
  OpList block();
  OpList scan_block();
  OpList moe();
  OpList head();
  OpList decoder();
  OpList decoder_embedding();

 private:
  TensorId tensor(std::string_view name, std::int64_t rows, std::int64_t cols,
                  TensorRole role = TensorRole::activation, double element = 0);
  TensorId add(std::string_view name, const Op& op, std::vector<TensorId> inputs, std::int64_t rows,
               std::int64_t cols, std::vector<TensorId> saved = {}, Region region = Region::rest);
  TensorId norm(std::string_view name, TensorId x, std::int64_t cols);
  TensorId embedded();
  // The bias of scores by distance, one for all layers of a stack.
  void relative_positions();
  Bytes size_of(std::int64_t rows, std::int64_t cols) const;
  Bytes full_message() const;
  // Enters a tensor-parallel region: f (identity, all-reduce in backward) or, sequence-parallel, g
  // (all-gather, reduce-scatter in backward).
  TensorId split(TensorId x) { return split(x, tokens_); }
  TensorId split(TensorId x, std::int64_t tokens);
  // Leaves it: all-reduce (identity in backward), or reduce-scatter (all-gather in backward).
  TensorId join(TensorId x);
  // `kept` is what backward needs of the input: the input itself, or its sequence-parallel shard,
  // gathered again.
  TensorId linear(std::string_view name, TensorId x, TensorId kept, std::int64_t n, std::int64_t k,
                  bool bias) {
    return linear(name, x, kept, tokens_, n, k, bias);
  }
  TensorId linear(std::string_view name, TensorId x, TensorId kept, std::int64_t rows,
                  std::int64_t n, std::int64_t k, bool bias);
  TensorId attention(TensorId normed);
  // Queries of `normed`, keys and values of the encoder's output.
  TensorId cross_attention(TensorId normed, TensorId encoded);
  TensorId plain_qkv(TensorId x, TensorId kept, std::int64_t heads, std::int64_t kv_heads);
  // The projections to the latent vectors are whole on every tensor rank, over the tokens it has;
  // those to the heads are cut by heads (Megatron's multi_latent_attention.py).
  TensorId latent_qkv(TensorId normed, std::int64_t heads);
  TensorId latent(std::string_view name, TensorId normed, std::int64_t columns);
  TensorId from_latent(std::string_view name, TensorId low, std::int64_t rank, std::int64_t n);
  // One kernel over whole sequences.
  FlashAttention attention_of(std::int64_t heads, std::int64_t kv_heads) const;
  // inputs: this rank's Q, K and V, and what it sees of the others' K and V.
  TensorId flash(const std::vector<TensorId>& inputs, const FlashAttention& op);
  TensorId context_parallel(TensorId qkv, std::int64_t heads, std::int64_t kv_heads);
  // Q, K, V: from all heads of a part of the sequence to a part of the heads of all of it; the
  // result back.
  TensorId ulysses(TensorId qkv, std::int64_t heads, std::int64_t kv_heads);
  TensorId to_places(std::string_view name, const std::vector<TensorId>& inputs, std::int64_t rows);
  // `saved` beside the softmax.
  TensorId unfused_loss(TensorId logits, std::int64_t vocab, std::vector<TensorId> saved);
  // Q first and K, V last of the inputs; so many keys of another sequence, 0: of this one.
  TensorId unfused(const std::vector<TensorId>& inputs, std::int64_t heads, std::int64_t keys = 0);
  TensorId mlp(TensorId x, TensorId kept);
  TensorId mlp(TensorId x, TensorId kept, std::int64_t width);
  // The rows that experts see: each token of this rank top_k times; all experts' ranks send as many
  // as they receive, and the ranks of one expert gather theirs.
  TensorId experts(TensorId x);
  // To the experts' ranks (and, gathered, to all ranks of an expert), or back.
  TensorId dispatched(std::string_view name, TensorId rows, std::int64_t own, bool there);
  TensorId expert_mlp(TensorId x, std::int64_t rows, std::int64_t local);
  TensorId residual(std::string_view name, TensorId x, TensorId skip);
  void leave_bias(TensorId x);
  OpList finish(TensorId input, TensorId output);
  std::int64_t encoder_tokens() const { return context_.micro_batch * encoder_sequence_; }
  std::int64_t local(std::int64_t tokens) const;

  const ModelSpec& model_;
  const LayerContext& context_;
  std::int64_t encoder_sequence_;
  std::int64_t tokens_;        // s·b, with context parallelism / c
  std::int64_t local_tokens_;  // with sequence parallelism / t
  bool dropout_;
  OpList list_;
};

}  // namespace costmodel
