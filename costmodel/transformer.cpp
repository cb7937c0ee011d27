#include "costmodel/transformer.hpp"

#include <algorithm>
#include <utility>

#include "costmodel/parallel_plan.hpp"

namespace costmodel {

namespace {

class Builder {
 public:
  Builder(const ModelSpec& model, const LayerContext& context)
      : model_(model),
        context_(context),
        tokens_(context.micro_batch * context.sequence / context.cp),
        local_tokens_(context.sequence_parallel ? ceil_div(tokens_, context.tp) : tokens_),
        dropout_(model.dropout > 0) {
    list_.nodes.reserve(24);
    list_.tensors.reserve(40);
  }

  OpList embedding() {
    const TensorId ids = tensor("token ids", tokens_, 1, TensorRole::statistics, 8);
    const std::int64_t vocab = padded_vocab(model_.vocab, context_.tp) / context_.tp;
    TensorId x = add("token embedding", Embedding{tokens_, model_.hidden, vocab}, {ids}, tokens_,
                     model_.hidden, {ids});
    x = join(x);
    if (model_.positions == Positions::learned) {
      const std::int64_t rows = model_.max_positions > 0 ? model_.max_positions : context_.sequence;
      x = add("position embedding", PositionEmbedding{local_tokens_, model_.hidden, rows}, {x},
              local_tokens_, model_.hidden);
    }
    if (model_.embedding_norm) x = norm("embedding norm", x, model_.hidden);
    if (dropout_) {
      const TensorId mask =
          tensor("embedding dropout mask", local_tokens_, model_.hidden, TensorRole::mask, 1);
      x = add("embedding dropout", Dropout{local_tokens_, model_.hidden}, {x}, local_tokens_,
              model_.hidden, {mask});
    }
    return finish(-1, x);
  }

  OpList block() {
    const TensorId x = tensor("layer input", local_tokens_, model_.hidden);
    if (model_.parallel_block) {
      const TensorId normed = norm("attention norm", x, model_.hidden);
      const TensorId normed_mlp = norm("MLP norm", x, model_.hidden);
      const TensorId from_attention = attention(split(normed), normed);
      const TensorId from_mlp = mlp(split(normed_mlp), normed_mlp);
      const TensorId sum =
          add("branch sum", BiasDropoutAdd{tokens_, model_.hidden, false, false, true},
              {from_attention, from_mlp}, tokens_, model_.hidden);
      return finish(x, residual("residual", join(sum), x));
    }
    const TensorId normed = norm("attention norm", x, model_.hidden);
    const TensorId middle =
        residual("attention residual", join(attention(split(normed), normed)), x);
    const TensorId normed_mlp = norm("MLP norm", middle, model_.hidden);
    return finish(x, residual("MLP residual", join(mlp(split(normed_mlp), normed_mlp)), middle));
  }

  OpList head() {
    const TensorId x = tensor("layer input", local_tokens_, model_.hidden);
    const TensorId normed = norm("final norm", x, model_.hidden);
    const TensorId whole = split(normed);
    const std::int64_t vocab = padded_vocab(model_.vocab, context_.tp) / context_.tp;
    const TensorId logits = linear("logits", whole, normed, vocab, model_.hidden, false);
    TensorId loss = -1;
    if (context_.fused_cross_entropy) {
      loss =
          add("cross-entropy", CrossEntropy{tokens_, vocab, true}, {logits}, tokens_, 1, {logits});
    } else {
      const TensorId softmax =
          tensor("fp32 softmax of logits", tokens_, vocab, TensorRole::activation, 4);
      list_.nodes.push_back(
          {"cross-entropy", CrossEntropy{tokens_, vocab, false}, {logits}, softmax, {softmax}});
      loss = softmax;
    }
    if (context_.tp > 1) {  // row maximum, target logit, sum of exponentials
      for (const auto* name : {"logits maximum", "target logit", "exponential sum"}) {
        loss = add(name,
                   Collective{CollectiveKind::all_reduce, CollectiveKind::none, Axis::tensor,
                              Bytes(static_cast<double>(tokens_) * 4)},
                   {loss}, tokens_, 1);
      }
    }
    return finish(x, loss);
  }

 private:
  TensorId tensor(std::string_view name, std::int64_t rows, std::int64_t cols,
                  TensorRole role = TensorRole::activation, double element = 0) {
    list_.tensors.push_back({name, rows, cols, element > 0 ? element : context_.element, role});
    return static_cast<TensorId>(list_.tensors.size() - 1);
  }

  TensorId add(std::string_view name, const Op& op, std::vector<TensorId> inputs, std::int64_t rows,
               std::int64_t cols, std::vector<TensorId> saved = {}, Region region = Region::rest) {
    const TensorId out = tensor(name, rows, cols);
    list_.nodes.push_back({name, op, std::move(inputs), out, std::move(saved), region});
    return out;
  }

  TensorId norm(std::string_view name, TensorId x, std::int64_t cols) {
    const std::int64_t rows = list_.tensors[static_cast<std::size_t>(x)].rows;
    const std::int64_t figures = model_.normalization == Normalization::layernorm ? 2 : 1;
    const TensorId statistics = tensor("norm statistics", rows, figures, TensorRole::statistics, 4);
    return add(name, Norm{rows, cols, model_.normalization}, {x}, rows, cols, {x, statistics});
  }

  Bytes size_of(std::int64_t rows, std::int64_t cols) const {
    return Bytes(static_cast<double>(rows) * static_cast<double>(cols) * context_.element);
  }

  Bytes full_message() const { return size_of(tokens_, model_.hidden); }

  // Enters a tensor-parallel region: f (identity, all-reduce in backward) or, sequence-parallel, g
  // (all-gather, reduce-scatter in backward).
  TensorId split(TensorId x) {
    if (context_.tp == 1) return x;
    const auto forward =
        context_.sequence_parallel ? CollectiveKind::all_gather : CollectiveKind::none;
    const auto backward =
        context_.sequence_parallel ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce;
    if (forward ==
        CollectiveKind::none) {  // forward is the identity: the same tensor, no copy is made
      list_.nodes.push_back({"enter tensor-parallel",
                             Collective{forward, backward, Axis::tensor, full_message()},
                             {x},
                             x,
                             {}});
      return x;
    }
    return add("enter tensor-parallel", Collective{forward, backward, Axis::tensor, full_message()},
               {x}, tokens_, model_.hidden);
  }

  // Leaves it: all-reduce (identity in backward), or reduce-scatter (all-gather in backward).
  TensorId join(TensorId x) {
    if (context_.tp == 1) return x;
    const auto forward =
        context_.sequence_parallel ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce;
    const auto backward =
        context_.sequence_parallel ? CollectiveKind::all_gather : CollectiveKind::none;
    return add("leave tensor-parallel", Collective{forward, backward, Axis::tensor, full_message()},
               {x}, local_tokens_, model_.hidden);
  }

  // `kept` is what backward needs of the input: the input itself, or its sequence-parallel shard,
  // gathered again.
  TensorId linear(std::string_view name, TensorId x, TensorId kept, std::int64_t n, std::int64_t k,
                  bool bias) {
    const bool regather = context_.sequence_parallel && kept != x;
    return add(name, Linear{tokens_, n, k, bias, regather}, {x}, tokens_, n, {kept});
  }

  TensorId attention(TensorId x, TensorId kept) {
    const std::int64_t heads = model_.heads / context_.tp;
    const std::int64_t kv_heads = std::max<std::int64_t>(1, model_.kv_heads / context_.tp);
    const std::int64_t q = heads * model_.head_dim;
    const std::int64_t columns = q + 2 * kv_heads * model_.head_dim;
    TensorId qkv = linear("QKV", x, kept, columns, model_.hidden, model_.qkv_bias);
    if (model_.qk_norm) {
      const std::int64_t rows = tokens_ * (heads + kv_heads);
      qkv = add("QK norm", Norm{rows, model_.head_dim, model_.normalization, 2}, {qkv}, tokens_,
                columns, {qkv});
    }
    if (model_.positions == Positions::rotary) {
      qkv = add("rotary", Rotary{tokens_, q + kv_heads * model_.head_dim}, {qkv}, tokens_, columns);
    }
    const TensorId context = context_.attention == AttentionKernel::unfused ? unfused(qkv, heads)
                             : context_.cp > 1 ? context_parallel(qkv, heads, kv_heads)
                                               : flash({qkv}, attention_of(heads, kv_heads));
    return linear("attention projection", context, context, model_.hidden, q, model_.linear_bias);
  }

  // One kernel over whole sequences.
  FlashAttention attention_of(std::int64_t heads, std::int64_t kv_heads) const {
    return {context_.micro_batch,
            context_.sequence,
            heads,
            kv_heads,
            model_.head_dim,
            context_.causal_skip,
            context_.attention == AttentionKernel::flash2};
  }

  // inputs: this rank's Q, K and V, and what it sees of the others' K and V.
  TensorId flash(const std::vector<TensorId>& inputs, const FlashAttention& op) {
    const std::int64_t rows = op.sequences * op.s;
    const TensorId statistics = tensor("log-sum-exp", rows, op.heads, TensorRole::statistics, 4);
    const TensorId out = add("flash attention", op, inputs, rows, op.heads * op.head_dim,
                             {inputs.front(), statistics}, Region::attention_core);
    list_.nodes.back().saved.push_back(out);
    return out;
  }

  TensorId context_parallel(TensorId qkv, std::int64_t heads, std::int64_t kv_heads) {
    if (context_.cp_comm == ContextExchange::a2a) return ulysses(qkv, heads, kv_heads);
    FlashAttention op = attention_of(heads, kv_heads);
    op.s /= context_.cp;
    op.keys = context_.sequence;
    const std::int64_t columns = 2 * kv_heads * model_.head_dim;
    const std::int64_t all_rows = tokens_ * context_.cp;
    const Bytes all_kv = size_of(all_rows, columns);
    const auto core = Region::attention_core;
    if (context_.cp_comm == ContextExchange::p2p) {  // one block is attended to, one arrives
      op.blocks = context_.cp;
      const TensorId blocks = add("K, V ring",
                                  Collective{CollectiveKind::ring, CollectiveKind::ring,
                                             Axis::context, all_kv, 2},  // backward: dK, dV too
                                  {qkv}, 2 * tokens_, columns, {}, core);
      return flash({qkv, blocks}, op);
    }
    const TensorId gathered = add("K, V gather",
                                  Collective{CollectiveKind::all_gather,
                                             CollectiveKind::reduce_scatter, Axis::context, all_kv},
                                  {qkv}, all_rows, columns, {}, core);
    const TensorId out = flash({qkv, gathered}, op);
    list_.nodes.push_back(
        {"K, V gathered again",
         Collective{CollectiveKind::none, CollectiveKind::all_gather, Axis::context, all_kv},
         {out},
         out,
         {},
         core});
    return out;
  }

  // Q, K, V: from all heads of a part of the sequence to a part of the heads of all of it; the
  // result back.
  TensorId ulysses(TensorId qkv, std::int64_t heads, std::int64_t kv_heads) {
    const std::int64_t q = heads * model_.head_dim, kv = kv_heads * model_.head_dim;
    const auto core = Region::attention_core;
    const auto exchange = [&](std::int64_t columns) {
      return Collective{CollectiveKind::all_to_all, CollectiveKind::all_to_all, Axis::context,
                        size_of(tokens_, columns)};
    };
    list_.nodes.push_back({"Q all-to-all", exchange(q), {qkv}, qkv, {}, core});
    list_.nodes.push_back({"K all-to-all", exchange(kv), {qkv}, qkv, {}, core});
    const TensorId whole = add("V all-to-all", exchange(kv), {qkv}, tokens_, q + 2 * kv, {}, core);
    const TensorId out = flash({whole}, attention_of(heads / context_.cp, kv_heads / context_.cp));
    return add("attention all-to-all", exchange(q), {out}, tokens_, q, {}, core);
  }

  TensorId unfused(TensorId qkv, std::int64_t heads) {
    const std::int64_t s = context_.sequence;
    const std::int64_t batch = context_.micro_batch * heads;
    const auto core = Region::attention_core;
    const TensorId scores = add("attention scores", AttentionScores{batch, s, model_.head_dim},
                                {qkv}, batch * s, s, {qkv}, core);
    const bool fused = context_.fused_softmax && batch % context_.fused_softmax_batches == 0;
    TensorId weights =
        add("softmax", Softmax{batch * s, s, fused}, {scores}, batch * s, s, {}, core);
    list_.nodes.back().saved.push_back(weights);
    if (dropout_) {
      const TensorId mask = tensor("attention dropout mask", batch * s, s, TensorRole::mask, 1);
      weights =
          add("attention dropout", Dropout{batch * s, s}, {weights}, batch * s, s, {mask}, core);
    }
    return add("attention context", AttentionContext{batch, s, model_.head_dim}, {weights, qkv},
               tokens_, heads * model_.head_dim, {weights, qkv}, core);
  }

  TensorId mlp(TensorId x, TensorId kept) {
    const std::int64_t inner = model_.mlp_inner() / context_.tp;
    const std::int64_t ffn = model_.ffn_hidden / context_.tp;
    const TensorId up = linear(model_.gated_mlp ? "MLP gate and up" : "MLP up", x, kept, inner,
                               model_.hidden, model_.linear_bias);
    const bool fused_bias = context_.fused_bias_activation || !model_.linear_bias;
    const TensorId act = add("activation", Activation{tokens_, ffn, model_.gated_mlp, fused_bias},
                             {up}, tokens_, ffn, {up});
    return linear("MLP down", act, act, model_.hidden, ffn, model_.linear_bias);
  }

  TensorId residual(std::string_view name, TensorId x, TensorId skip) {
    const BiasDropoutAdd op{local_tokens_, model_.hidden, model_.linear_bias, dropout_,
                            context_.fused_bias_dropout_add};
    const TensorId out = add(name, op, {x, skip}, local_tokens_, model_.hidden);
    if (dropout_) {
      const TensorId mask =
          tensor("dropout mask", local_tokens_, model_.hidden, TensorRole::mask, 1);
      list_.nodes.back().saved.push_back(mask);
    }
    return out;
  }

  OpList finish(TensorId input, TensorId output) {
    list_.input = input;
    list_.output = output;
    return std::move(list_);
  }

  const ModelSpec& model_;
  const LayerContext& context_;
  std::int64_t tokens_;        // s·b
  std::int64_t local_tokens_;  // s·b / t with sequence parallelism
  bool dropout_;
  OpList list_;
};

}  // namespace

OpList build_layer(LayerKind kind, const ModelSpec& model, const LayerContext& context) {
  Builder builder(model, context);
  switch (kind) {
    case LayerKind::embedding: return builder.embedding();
    case LayerKind::block: return builder.block();
    case LayerKind::head: return builder.head();
  }
  return {};
}

double weights_of(const OpList& list) {
  double sum = 0;
  for (const Node& node : list.nodes) sum += weights_of(node.op);
  return sum;
}

}  // namespace costmodel
