// Builds the op list of one layer, node by node. The code is in transformer.cpp, attention.cpp,
// experts.cpp, recurrence.cpp, tower_layers.cpp and layer_builder.cpp.
// Internal to costmodel.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "costmodel/operators/transformer.hpp"

namespace costmodel {

class LayerBuilder {
 public:
  // `context.sequence` is the layer's own sequence length; a decoder's cross-attention reads
  // `encoder_sequence` tokens.
  LayerBuilder(const ModelSpec& model, const LayerContext& context,
               std::int64_t encoder_sequence = 0);
  OpList embedding();
  OpList block(const Block& own);
  OpList head();
  OpList decoder_embedding();
  OpList mtp_start();
  // What a tower does before or after its layers; `places`: the result takes the place of tokens.
  OpList steps(std::span<const StepShape> steps, bool places);

 private:
  TensorId tensor(std::string_view name, std::int64_t rows, std::int64_t cols,
                  TensorRole role = TensorRole::activation, double element = 0);
  TensorId add(Site site, const Op& op, std::vector<TensorId> inputs, std::int64_t rows,
               std::int64_t cols, std::vector<TensorId> saved = {}, Region region = Region::rest);
  TensorId norm(Site site, TensorId x, std::int64_t cols) {
    return norm(site, x, cols, model_.normalization);
  }
  TensorId norm(Site site, TensorId x, std::int64_t cols, Normalization kind);
  // Bytes an element that the framework's kernel keeps of its own making; none: by the op list.
  std::optional<double> keeps(KernelOp op) const;
  // What the last node keeps in addition: a tensor of its own, of so many bytes an element.
  // A hidden state between layers, in the width that the framework passes on.
  TensorId in_stream(TensorId x);
  TensorId layer_input();
  std::optional<double> copies_of_norm(int products) const;
  void keep(std::string_view name, std::int64_t rows, std::int64_t cols,
            std::optional<double> each);
  // A norm before attention or MLP, which recomputation may name.
  TensorId layer_norm(Site site, TensorId x);
  // Puts the nodes from `first` on, which have no region of their own, into `region`.
  void mark(std::size_t first, Region region);
  // A CUDA graph of this scope captures the nodes from `first` on.
  void capture(std::size_t first, GraphScope scope);
  TensorId embedded();
  // The relative-position bias of the scores, one for all layers of a stack.
  void relative_positions();
  Bytes size_of(std::int64_t rows, std::int64_t cols) const;
  // Enters a tensor-parallel region: f (identity, all-reduce in backward), or with sequence
  // parallelism g (all-gather, reduce-scatter in backward).
  TensorId split(TensorId x) { return split(x, tokens_); }
  TensorId split(TensorId x, std::int64_t tokens);
  // Leaves the region: all-reduce (identity in backward), or with sequence parallelism
  // reduce-scatter (all-gather in backward).
  TensorId join(TensorId x) { return join(x, model_.hidden); }
  TensorId join(TensorId x, std::int64_t columns);
  // `kept` is the tensor saved for backward: the input, or its sequence-parallel shard, which is
  // gathered again.
  TensorId linear(Site site, TensorId x, TensorId kept, std::int64_t n, std::int64_t k, bool bias) {
    return linear(site, x, kept, tokens_, n, k, bias);
  }
  TensorId linear(Site site, TensorId x, TensorId kept, std::int64_t rows, std::int64_t n,
                  std::int64_t k, bool bias);
  TensorId step(const StepShape& s, TensorId x);
  TensorId attention(TensorId normed);
  OpList parallel_block(TensorId x);
  OpList decoder_block(TensorId x);
  // The attention of this layer, or what it has in place of it.
  TensorId mixed(TensorId normed);
  TensorId delta_net(TensorId normed);
  TensorId scan(TensorId normed);
  TensorId selective_scan(TensorId normed);
  TensorId attention_and_scan(TensorId normed);
  TensorId kimi_delta(TensorId normed);
  // A linear attention's result, normed by heads and gated, back to hidden columns.
  TensorId gated_out(TensorId result, TensorId gate, const Norm& op, std::int64_t columns);
  TensorId lightning(TensorId normed);
  TensorId rwkv(TensorId normed);
  TensorId short_convolution(TensorId normed);
  // The indexer of sparse attention, from the latent vector of the queries.
  void index(TensorId normed, TensorId low_q);
  TensorId normed_heads(TensorId qkv, std::int64_t heads, std::int64_t kv_heads,
                        std::int64_t columns);
  // Queries from `normed`, keys and values from the encoder's output.
  TensorId cross_attention(TensorId normed, TensorId encoded);
  TensorId plain_qkv(TensorId x, TensorId kept, std::int64_t heads, std::int64_t kv_heads);
  // The down-projections to the latent vectors are replicated on every tensor rank and run on its
  // tokens; the up-projections are sharded by heads (Megatron's multi_latent_attention.py).
  TensorId latent_qkv(TensorId normed, std::int64_t heads);
  TensorId latent(Site site, TensorId normed, std::int64_t columns);
  TensorId from_latent(Site site, TensorId low, std::int64_t rank, std::int64_t n);
  // One kernel over full sequences.
  FlashAttention attention_of(std::int64_t heads, std::int64_t kv_heads) const;
  // inputs: this rank's Q, K and V, and the K and V it receives from other ranks.
  TensorId flash(const std::vector<TensorId>& inputs, const FlashAttention& op);
  TensorId context_parallel(TensorId qkv, std::int64_t heads, std::int64_t kv_heads);
  // Q, K, V: all-to-all from all heads of a part of the sequence to a part of the heads of the full
  // sequence; the result is sent back.
  TensorId ulysses(TensorId qkv, std::int64_t heads, std::int64_t kv_heads);
  TensorId to_places(Site site, const std::vector<TensorId>& inputs, std::int64_t rows);
  // `saved` is kept in addition to the softmax.
  TensorId wide_loss(TensorId logits, std::int64_t vocab, std::vector<TensorId> saved);
  void exchange_rows(TensorId loss);
  // The first of `inputs` is Q, the last are K and V. `keys` is the length of another sequence; 0:
  // this one.
  TensorId unfused(const std::vector<TensorId>& inputs, std::int64_t heads, std::int64_t keys = 0);
  // Attention, MLP or experts with the norm before and the residual after.
  TensorId before_branch(Site site, TensorId x);
  TensorId after_branch(Site residual_site, Site norm_site, TensorId result, TensorId x);
  TensorId head_of_encoder(TensorId x);
  TensorId after_attention(TensorId x);
  TensorId after_scan(TensorId x);
  TensorId after_mlp(TensorId x);
  TensorId after_experts(TensorId x);
  TensorId mlp(TensorId x, TensorId kept);
  TensorId mlp(TensorId x, TensorId kept, std::int64_t width);
  // Routed rows: each token of this rank top_k times. With balanced load every expert-parallel rank
  // receives as many rows as it sends; with etp > 1 the ranks of an expert gather theirs.
  // The router reads `scored`.
  TensorId experts(TensorId x, TensorId scored);
  // Dispatch to the experts' ranks (then gathered over the ranks of an expert), or combine back.
  // The rank sends `own` rows; an exchange takes as long as the fullest rank's.
  TensorId dispatched(Site site, TensorId rows, std::int64_t own, bool there);
  TensorId expert_mlp(TensorId x, std::int64_t rows, std::int64_t local);
  TensorId routed(TensorId x);
  TensorId clamped(TensorId x, std::int64_t rows, std::int64_t cols);
  TensorId with_expert_bias(TensorId y, std::int64_t rows, std::int64_t local);
  // A part of a column-parallel product's columns on this rank, which may have an adapter.
  struct AdaptedPart {
    AdapterTarget target;
    std::int64_t columns;
  };
  // Adapters of each expert of its own, added to a grouped product `y` of `x`.
  TensorId expert_adapters(TensorId y, TensorId x, std::int64_t local,
                           std::initializer_list<AdaptedPart> parts);
  // A row-parallel product's adapter, added where its result is summed over the tensor ranks.
  struct WaitingAdapter {
    TensorId x;
    AdapterTarget target;
  };
  // y with the results of the parts' adapters, which read `x`, all of the product's input.
  TensorId column_adapters(TensorId y, TensorId x, std::initializer_list<AdaptedPart> parts);
  void row_adapter(TensorId x, AdapterTarget target);
  TensorId row_adapters(TensorId y, std::int64_t columns);
  TensorId adapter_input(TensorId x);
  TensorId adapter_sum(TensorId y, TensorId result, std::int64_t inner);
  // Whether weights are kept as narrow as their products' operands: all, or a frozen base.
  bool keeps_narrow_weights() const;
  bool keeps_narrow_base() const;
  // The inputs of a product: x, and its weight where that is written out before.
  std::vector<TensorId> with_weight(Site site, TensorId x, std::int64_t n, std::int64_t k);
  void freeze();
  TensorId residual(Site site, TensorId x, TensorId skip);
  void leave_bias(TensorId x);
  OpList finish(TensorId input, TensorId output);
  std::int64_t encoder_tokens() const { return context_.micro_batch * encoder_sequence_; }
  std::int64_t local(std::int64_t tokens) const;

  const ModelSpec& model_;
  const LayerContext& context_;
  std::int64_t encoder_sequence_;
  std::int64_t tokens_;        // s·b; with context parallelism divided by c
  std::int64_t local_tokens_;  // with sequence parallelism divided by t
  bool dropout_;
  std::int64_t window_;  // of attention in this layer; 0: none
  Mixer mixer_ = Mixer::attention;
  std::vector<WaitingAdapter> waiting_;
  OpList list_;
};

}  // namespace costmodel
