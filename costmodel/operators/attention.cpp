// Attention: projections, the attention core, and the exchange of keys and values between
// context-parallel ranks.
#include <algorithm>

#include "costmodel/operators/layer_builder.hpp"

namespace costmodel {

TensorId LayerBuilder::attention(TensorId normed) {
  const std::size_t first = list_.nodes.size();
  const std::int64_t heads = model_.heads / context_.tp;
  const std::int64_t values = heads * model_.value_dim();
  const std::int64_t kv_heads = std::max<std::int64_t>(1, model_.kv_heads / context_.tp);
  const TensorId qkv = model_.latent_attention()
                           ? latent_qkv(normed, heads)
                           : plain_qkv(split(normed), normed, heads, kv_heads);
  TensorId context = context_.attention == AttentionKernel::unfused ? unfused({qkv}, heads)
                     : context_.cp > 1 ? context_parallel(qkv, heads, kv_heads)
                                       : flash({qkv}, attention_of(heads, kv_heads));
  // A gate of one logit a head is read with no columns of its own to speak of.
  if (model_.gate_size() > 0) {
    context = add(Site::attention_gate, Activation{tokens_, values, model_.attention_gate, true},
                  {context, qkv}, tokens_, values, {context, qkv});
  }
  row_adapter(context, AdapterTarget::o);
  const TensorId out = linear(Site::attention_projection, context, context, model_.hidden, values,
                              model_.linear_bias);
  capture(first, GraphScope::attention);
  return out;
}

TensorId LayerBuilder::cross_attention(TensorId normed, TensorId encoded) {
  const std::int64_t heads = model_.heads / context_.tp, h = model_.hidden, d = model_.head_dim;
  const std::int64_t kv_heads = std::max<std::int64_t>(1, model_.kv_heads / context_.tp);
  const TensorId q =
      linear(Site::cross_attention_q, split(normed), normed, heads * d, h, model_.qkv_bias);
  const TensorId kv = linear(Site::cross_attention_kv, split(encoded, encoder_tokens()), encoded,
                             encoder_tokens(), 2 * kv_heads * d, h, model_.qkv_bias);
  TensorId context = -1;
  if (context_.attention == AttentionKernel::unfused) {
    context = unfused({q, kv}, heads, encoder_sequence_);
  } else {
    FlashAttention op = attention_of(heads, kv_heads);
    op.causal_skip = false;
    op.keys = encoder_sequence_;
    op.cross = true;
    context = flash({q, kv}, op);
  }
  return linear(Site::cross_attention_projection, context, context, h, heads * d,
                model_.linear_bias);
}

TensorId LayerBuilder::plain_qkv(TensorId x, TensorId kept, std::int64_t heads,
                                 std::int64_t kv_heads) {
  const std::int64_t q = heads * model_.head_dim;
  const std::int64_t gate = model_.gate_size() / context_.tp;
  const std::int64_t values = kv_heads * model_.value_dim();
  const std::int64_t columns = q + kv_heads * model_.head_dim + values + gate;
  const std::int64_t projected = model_.keys_as_values ? columns - values : columns;
  TensorId qkv = linear(Site::qkv, x, kept, projected, model_.hidden, model_.qkv_bias);
  keep("norm's copies", tokens_, model_.hidden, copies_of_norm(3));
  qkv = column_adapters(qkv, x,
                        {{AdapterTarget::q, model_.attention_gate ? q + gate : q},
                         {AdapterTarget::k, kv_heads * model_.head_dim},
                         {AdapterTarget::v, values}});
  if (model_.qk_norm) qkv = normed_heads(qkv, heads, kv_heads, columns);
  if (model_.positions == Positions::rotary) {
    qkv =
        add(Site::rotary, Rotary{tokens_, q + kv_heads * model_.head_dim}, {qkv}, tokens_, columns);
  }
  return qkv;
}

// Over all heads at once, the sums of squares are those of all tensor ranks.
TensorId LayerBuilder::normed_heads(TensorId qkv, std::int64_t heads, std::int64_t kv_heads,
                                    std::int64_t columns) {
  if (!model_.qk_norm_whole) {
    const std::int64_t rows = tokens_ * (heads + kv_heads);
    return add(Site::qk_norm,
               Norm{rows, model_.head_dim, model_.normalization, model_.qk_norm_gains ? 2 : 0},
               {qkv}, tokens_, columns, {qkv});
  }
  if (context_.tp > 1) {
    const auto sum = CollectiveKind::all_reduce;
    const Bytes sums(static_cast<double>(tokens_) * 2 * 4);  // of queries and of keys, fp32
    list_.nodes.push_back(
        {Site::qk_norm_sums, Collective{sum, sum, Axis::tensor, sums}, {qkv}, qkv, {}});
  }
  return add(Site::qk_norm,
             Norm{tokens_, (heads + kv_heads) * model_.head_dim, model_.normalization}, {qkv},
             tokens_, columns, {qkv});
}

TensorId LayerBuilder::latent_qkv(TensorId normed, std::int64_t heads) {
  const std::int64_t h = model_.hidden, query = heads * model_.head_dim;
  const TensorId low_q =
      model_.q_lora_rank > 0 ? latent(Site::q_down, normed, model_.q_lora_rank) : normed;
  const TensorId q = model_.q_lora_rank == 0
                         ? linear(Site::q, split(normed), normed, query, h, false)
                         : from_latent(Site::q, low_q, model_.q_lora_rank, query);
  if (mixer_ == Mixer::sparse) index(normed, low_q);
  const std::int64_t rank = model_.kv_lora_rank, rotary = model_.qk_pos_emb_head_dim;
  const TensorId low = latent(Site::kv_down, normed, rank + rotary);
  if (context_.sequence_parallel) {  // the rotary key that all heads share
    list_.nodes.push_back({Site::rotary_key,
                           Collective{CollectiveKind::all_gather, CollectiveKind::reduce_scatter,
                                      Axis::tensor, size_of(tokens_, rotary)},
                           {low},
                           low,
                           {}});
  }
  const TensorId kv =
      from_latent(Site::kv, low, rank, heads * (model_.qk_head_dim + model_.value_dim()));
  const std::int64_t columns = 2 * query + heads * model_.value_dim();
  return add(Site::rotary_and_heads, Rotary{tokens_, 2 * query}, {q, kv, low}, tokens_, columns, {},
             Region::latent_up);
}

TensorId LayerBuilder::latent(Site site, TensorId normed, std::int64_t columns) {
  const Linear product{.m = local_tokens_,
                       .n = columns,
                       .k = model_.hidden,
                       .bias = false,
                       .regather = false,
                       .narrow_weight = keeps_narrow_weights()};
  return add(site, product, {normed}, local_tokens_, columns, {normed});
}

TensorId LayerBuilder::from_latent(Site site, TensorId low, std::int64_t rank, std::int64_t n) {
  const std::size_t first = list_.nodes.size();
  const TensorId normed = norm(Site::latent_norm, low, rank);
  const TensorId out = linear(site, split(normed), normed, n, rank, false);
  mark(first, Region::latent_up);
  return out;
}

// DeepSeek's sparse attention (DeepSeek-V3.2, arXiv:2512.02556, section 2.1): an indexer scores all
// keys of a sequence, and a query attends to those that it scores best.
// Every tensor rank scores all tokens (deepseek-ai/DeepSeek-V3.2-Exp, inference/model.py, Indexer):
// queries from their latent vector, one key a token, and a weight for each head, by which one
// kernel sums what the heads score.
void LayerBuilder::index(TensorId normed, TensorId low_q) {
  const std::int64_t a = model_.index_heads, d = model_.index_head_dim;
  const std::int64_t b = context_.micro_batch, s = context_.sequence;
  const auto core = Region::attention_core;
  const TensorId queries =
      add(Site::index_queries, Linear{local_tokens_, a * d, model_.q_lora_rank, false, false},
          {low_q}, local_tokens_, a * d, {low_q});
  const TensorId low_key = latent(Site::index_key, normed, d);
  const TensorId key = add(Site::index_norm, Norm{local_tokens_, d, Normalization::layernorm},
                           {low_key}, local_tokens_, d, {low_key});
  const TensorId weights = latent(Site::index_weights, normed, a);
  const TensorId scores = add(Site::index_scores, AttentionScores{b, s, a * d},
                              {queries, key, weights}, b * s, s, {queries, key, weights}, core);
  const TensorId chosen =
      tensor("chosen keys", b * s, model_.index_topk, TensorRole::statistics, 4);
  list_.nodes.push_back(
      {Site::index_choice, Routing{b * s, s, model_.index_topk}, {scores}, chosen, {chosen}, core});
}

FlashAttention LayerBuilder::attention_of(std::int64_t heads, std::int64_t kv_heads) const {
  const std::int64_t chunk = mixer_ == Mixer::chunked ? model_.attention_chunk : 0;
  return {context_.micro_batch,
          context_.sequence,
          heads,
          kv_heads,
          model_.head_dim,
          context_.causal_skip,
          context_.attention == AttentionKernel::flash2,
          0,
          1,
          model_.value_dim(),
          false,
          context_.narrow_attention,
          model_.attention_sinks,
          window_,
          chunk > 0 && chunk < context_.sequence ? static_cast<double>(chunk) : context_.attended,
          context_.attention_as_measured,
          context_.attention == AttentionKernel::cudnn};
}

TensorId LayerBuilder::flash(const std::vector<TensorId>& inputs, const FlashAttention& op) {
  const std::int64_t rows = op.sequences * op.s;
  const TensorId statistics = tensor("log-sum-exp", rows, op.heads, TensorRole::statistics, 4);
  const TensorId out = add(Site::flash_attention, op, inputs, rows, op.heads * op.value_dim(),
                           {inputs.front(), statistics}, Region::attention_core);
  if (op.narrow) {  // it keeps its own fp8 copies of Q, K, V and of the result
    const std::int64_t all = list_.tensors[static_cast<std::size_t>(inputs.front())].cols;
    const TensorId qkv = tensor("narrow Q, K, V", rows, all, TensorRole::activation, 1);
    list_.tensors[static_cast<std::size_t>(qkv)].cast_of = inputs.front();
    const TensorId result =
        tensor("narrow result", rows, op.heads * op.value_dim(), TensorRole::activation, 1);
    list_.nodes.back().saved = {qkv, statistics, result};
    return out;
  }
  list_.nodes.back().saved.push_back(out);
  const std::int64_t repeated = (op.heads - op.kv_heads) * (op.head_dim + op.value_dim());
  if (!op.cross) keep("repeated keys and values", rows, repeated, keeps(KernelOp::repeat_kv));
  if (op.cross) list_.nodes.back().saved.push_back(inputs.back());
  return out;
}

TensorId LayerBuilder::context_parallel(TensorId qkv, std::int64_t heads, std::int64_t kv_heads) {
  if (context_.cp_comm == ContextExchange::a2a) return ulysses(qkv, heads, kv_heads);
  FlashAttention op = attention_of(heads, kv_heads);
  op.s /= context_.cp;
  op.keys = context_.sequence;
  const std::int64_t columns = kv_heads * (model_.head_dim + model_.value_dim());
  const std::int64_t all_rows = tokens_ * context_.cp;
  const Bytes all_kv = size_of(all_rows, columns);
  const auto core = Region::attention_core;
  if (context_.cp_comm == ContextExchange::p2p) {  // one block is attended to, one arrives
    op.blocks = context_.cp;
    const TensorId blocks = add(Site::kv_ring,
                                Collective{CollectiveKind::ring, CollectiveKind::ring,
                                           Axis::context, all_kv, 2},  // backward: dK, dV too
                                {qkv}, 2 * tokens_, columns, {}, core);
    return flash({qkv, blocks}, op);
  }
  const TensorId gathered = add(
      Site::kv_gather,
      Collective{CollectiveKind::all_gather, CollectiveKind::reduce_scatter, Axis::context, all_kv},
      {qkv}, all_rows, columns, {}, core);
  const TensorId out = flash({qkv, gathered}, op);
  list_.nodes.push_back(
      {Site::kv_gathered_again,
       Collective{CollectiveKind::none, CollectiveKind::all_gather, Axis::context, all_kv},
       {out},
       out,
       {},
       core});
  return out;
}

TensorId LayerBuilder::ulysses(TensorId qkv, std::int64_t heads, std::int64_t kv_heads) {
  const std::int64_t q = heads * model_.head_dim, k = kv_heads * model_.head_dim;
  const std::int64_t v = kv_heads * model_.value_dim(), result = heads * model_.value_dim();
  const auto core = Region::attention_core;
  const auto exchange = [&](std::int64_t columns) {
    return Collective{CollectiveKind::all_to_all, CollectiveKind::all_to_all, Axis::context,
                      size_of(tokens_, columns)};
  };
  list_.nodes.push_back({Site::q_all_to_all, exchange(q), {qkv}, qkv, {}, core});
  list_.nodes.push_back({Site::k_all_to_all, exchange(k), {qkv}, qkv, {}, core});
  const TensorId whole = add(Site::v_all_to_all, exchange(v), {qkv}, tokens_, q + k + v, {}, core);
  const TensorId out = flash({whole}, attention_of(heads / context_.cp, kv_heads / context_.cp));
  return add(Site::attention_all_to_all, exchange(result), {out}, tokens_, result, {}, core);
}

TensorId LayerBuilder::unfused(const std::vector<TensorId>& inputs, std::int64_t heads,
                               std::int64_t keys) {
  const std::int64_t s = context_.sequence, columns = keys > 0 ? keys : s;
  const std::int64_t batch = context_.micro_batch * heads;
  const auto core = Region::attention_core;
  TensorId scores =
      add(Site::attention_scores, AttentionScores{batch, s, model_.head_dim, keys, window_}, inputs,
          batch * s, columns, inputs, core);
  if (model_.positions == Positions::relative && keys == 0) {
    scores = add(Site::relative_position_bias, BiasDropoutAdd{batch * s, s, false, false, true},
                 {scores}, batch * s, s, {}, core);
  }
  const bool fused = context_.fused_softmax && batch % context_.fused_softmax_batches == 0;
  const bool triangular = fused && keys == 0 && context_.triangular_softmax;
  const Softmax softmax{batch * s, columns, fused, triangular, model_.attention_sinks ? heads : 0};
  TensorId weights = add(Site::softmax, softmax, {scores}, batch * s, columns, {}, core);
  list_.nodes.back().saved.push_back(weights);
  if (dropout_) {
    const TensorId mask = tensor("attention dropout mask", batch * s, columns, TensorRole::mask, 1);
    weights = add(Site::attention_dropout, Dropout{batch * s, columns}, {weights}, batch * s,
                  columns, {mask}, core);
  }
  const TensorId values = inputs.back();
  return add(Site::attention_context, AttentionContext{batch, s, model_.value_dim(), keys, window_},
             {weights, values}, tokens_, heads * model_.value_dim(), {weights, values}, core);
}

}  // namespace costmodel
