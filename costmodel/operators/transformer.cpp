#include "costmodel/operators/transformer.hpp"

#include "costmodel/operators/layer_builder.hpp"
#include "costmodel/plan/parallel_plan.hpp"

namespace costmodel {

TensorId LayerBuilder::embedded() {
  const TensorId ids = tensor("token ids", tokens_, 1, TensorRole::statistics, 8);
  const std::int64_t vocab = padded_vocab(model_.vocab, context_.tp) / context_.tp;
  TensorId x = add(Site::token_embedding, Embedding{tokens_, model_.hidden, vocab}, {ids}, tokens_,
                   model_.hidden, {ids});
  x = join(x);
  if (model_.positions == Positions::learned) {
    const std::int64_t rows = model_.max_positions > 0 ? model_.max_positions : context_.sequence;
    x = add(Site::position_embedding, PositionEmbedding{local_tokens_, model_.hidden, rows}, {x},
            local_tokens_, model_.hidden);
  }
  if (model_.positions == Positions::relative) relative_positions();
  if (model_.embedding_norm) x = norm(Site::embedding_norm, x, model_.hidden);
  if (dropout_) {
    const TensorId mask =
        tensor("embedding dropout mask", local_tokens_, model_.hidden, TensorRole::mask, 1);
    x = add(Site::embedding_dropout, Dropout{local_tokens_, model_.hidden}, {x}, local_tokens_,
            model_.hidden, {mask});
  }
  return x;
}

void LayerBuilder::relative_positions() {
  const std::int64_t s = context_.sequence, heads = model_.heads / context_.tp;
  add(Site::relative_positions, PositionEmbedding{s * s, heads, relative_buckets}, {}, s * s,
      heads);
}

OpList LayerBuilder::embedding() { return finish(-1, embedded()); }

OpList LayerBuilder::decoder_embedding() {
  const TensorId x = tensor("encoder's last layer", local(encoder_tokens()), model_.hidden);
  norm(Site::encoder_final_norm, x, model_.hidden);
  return finish(x, embedded());
}

// The table is the one of the embedding, which the last stage has a copy of.
OpList LayerBuilder::mtp_start() {
  const std::int64_t h = model_.hidden;
  const TensorId x = tensor("layer input", local_tokens_, h);
  const TensorId next = norm(Site::next_tokens_norm, embedded(), h);
  const TensorId own = norm(Site::hidden_norm, x, h);
  const TensorId both =
      add(Site::concatenation, Permute{local_tokens_, 2 * h, 1}, {own, next}, local_tokens_, 2 * h);
  const TensorId out =
      linear(Site::mtp_projection, split(both), both, h / context_.tp, 2 * h, false);
  return finish(x, join(out));
}

OpList LayerBuilder::block() {
  const TensorId x = tensor("layer input", local_tokens_, model_.hidden);
  if (model_.parallel_block) {
    const TensorId normed = norm(Site::attention_norm, x, model_.hidden);
    const TensorId normed_mlp = norm(Site::mlp_norm, x, model_.hidden);
    const TensorId from_attention = attention(normed);
    const TensorId from_mlp = mlp(split(normed_mlp), normed_mlp);
    const TensorId sum =
        add(Site::branch_sum, BiasDropoutAdd{tokens_, model_.hidden, false, false, true},
            {from_attention, from_mlp}, tokens_, model_.hidden);
    return finish(x, residual(Site::residual, join(sum), x));
  }
  return finish(x, after_mlp(after_attention(x)));
}

TensorId LayerBuilder::after_attention(TensorId x) {
  const TensorId normed = layer_norm(Site::attention_norm, x);
  return residual(Site::attention_residual, join(attention(normed)), x);
}

TensorId LayerBuilder::after_mlp(TensorId x) {
  const TensorId normed = layer_norm(Site::mlp_norm, x);
  const std::size_t own = list_.nodes.size();
  const TensorId out = join(mlp(split(normed), normed));
  mark(own, Region::dense_mlp);
  for (std::size_t i = own; i < list_.nodes.size(); ++i) list_.nodes[i].scope = GraphScope::mlp;
  return residual(Site::mlp_residual, out, x);
}

OpList LayerBuilder::attention_layer() {
  const TensorId x = tensor("layer input", local_tokens_, model_.hidden);
  return finish(x, after_attention(x));
}

OpList LayerBuilder::mlp_layer() {
  const TensorId x = tensor("layer input", local_tokens_, model_.hidden);
  return finish(x, after_mlp(x));
}

OpList LayerBuilder::expert_layer() {
  const TensorId x = tensor("layer input", local_tokens_, model_.hidden);
  return finish(x, after_experts(x));
}

OpList LayerBuilder::decoder() {
  const std::int64_t h = model_.hidden;
  const TensorId x = tensor("layer input", local_tokens_, h);
  const TensorId encoded =
      tensor("encoder's output", local(encoder_tokens()), h, TensorRole::shared);
  const TensorId normed = norm(Site::attention_norm, x, h);
  const TensorId own = residual(Site::attention_residual, join(attention(normed)), x);
  const TensorId normed_cross = norm(Site::cross_attention_norm, own, h);
  const TensorId middle =
      residual(Site::cross_attention_residual, join(cross_attention(normed_cross, encoded)), own);
  const TensorId normed_mlp = norm(Site::mlp_norm, middle, h);
  return finish(x, residual(Site::mlp_residual, join(mlp(split(normed_mlp), normed_mlp)), middle));
}

// Norm, input projection, convolution, scan, gated norm, output projection (arXiv:2405.21060,
// figure 6). Keeps what the authors' memory-efficient kernel keeps: the results of the projection
// and of the scan; backward recomputes the convolution, in addition to what the scan recomputes.
OpList LayerBuilder::scan_layer() {
  const std::int64_t heads = model_.scan_heads() / context_.tp,
                     groups = model_.ssm_groups / context_.tp;
  const std::int64_t inner = heads * model_.scan_head_dim();
  const std::int64_t channels = inner + 2 * groups * model_.state_size;
  const TensorId x = tensor("layer input", local_tokens_, model_.hidden);
  const TensorId normed = norm(Site::scan_norm, x, model_.hidden);
  const TensorId in =
      linear(Site::scan_in, split(normed), normed, inner + channels + heads, model_.hidden, false);
  const TensorId mixed = add(Site::convolution, Convolution{tokens_, channels, model_.conv_kernel},
                             {in}, tokens_, channels, {in});
  const Scan scan{context_.micro_batch,   context_.sequence, heads,
                  model_.scan_head_dim(), model_.state_size, groups};
  const TensorId result = add(Site::scan, scan, {mixed, in}, tokens_, inner, {in});
  const TensorId gated = add(Site::gated_norm, Norm{tokens_, inner, model_.normalization},
                             {result, in}, tokens_, inner, {result, in});
  const TensorId out = linear(Site::scan_out, gated, gated, model_.hidden, inner, false);
  return finish(x, residual(Site::residual, join(out), x));
}

OpList LayerBuilder::moe() {
  const TensorId x = tensor("layer input", local_tokens_, model_.hidden);
  return finish(x, after_experts(after_attention(x)));
}

TensorId LayerBuilder::after_experts(TensorId x) {
  const TensorId normed = layer_norm(Site::mlp_norm, x);
  const std::size_t routed = list_.nodes.size();
  TensorId out = experts(normed);
  mark(routed, Region::experts);
  if (model_.shared_experts > 0) {
    const std::size_t own = list_.nodes.size();
    const TensorId shared = join(mlp(split(normed), normed, model_.shared_ffn()));
    mark(own, Region::shared_experts);
    out = add(Site::expert_sum, BiasDropoutAdd{local_tokens_, model_.hidden, false, false, true},
              {out, shared}, local_tokens_, model_.hidden);
  }
  return residual(Site::mlp_residual, out, x);
}

OpList LayerBuilder::head() {
  const TensorId x = tensor("layer input", local_tokens_, model_.hidden);
  const TensorId normed = norm(Site::final_norm, x, model_.hidden);
  const TensorId whole = split(normed);
  const std::int64_t vocab = padded_vocab(model_.vocab, context_.tp) / context_.tp;
  const TensorId logits = linear(Site::logits, whole, normed, vocab, model_.hidden, false);
  // Maximum, exponential sum, loss and target of each row.
  const TensorId labels = tensor("labels", tokens_, 1, TensorRole::statistics, 8);
  const TensorId rows = tensor("logit statistics", tokens_, 3, TensorRole::statistics, 4);
  TensorId loss = -1;
  if (context_.fused_cross_entropy) {
    loss = add(Site::cross_entropy, CrossEntropy{tokens_, vocab, true}, {logits}, tokens_, 1,
               {logits, labels, rows});
  } else {
    loss = unfused_loss(logits, vocab, {labels, rows});
  }
  if (context_.tp > 1) {  // among the row statistics
    for (const Site site : {Site::logits_maximum, Site::target_logit, Site::exponential_sum}) {
      list_.nodes.push_back({site,
                             Collective{CollectiveKind::all_reduce, CollectiveKind::none,
                                        Axis::tensor, Bytes(static_cast<double>(tokens_) * 4)},
                             {loss},
                             loss,
                             {}});
    }
  }
  return finish(x, loss);
}

// Megatron computes the softmax, and in backward its gradient, in one fp32 buffer
// (core/tensor_parallel/cross_entropy.py: exp(out=...), grad_input = softmax). PyTorch's
// cross-entropy of fp32 logits has three: log-softmax, its gradient, and that of the logits.
TensorId LayerBuilder::unfused_loss(TensorId logits, std::int64_t vocab,
                                    std::vector<TensorId> saved) {
  const bool in_place = !context_.fp32_logits;
  const CrossEntropy op{tokens_, vocab, false};
  const TensorId softmax = tensor("fp32 softmax of logits", tokens_, vocab,
                                  in_place ? TensorRole::beside : TensorRole::activation, 4);
  saved.insert(saved.begin(), softmax);
  if (in_place) return add(Site::cross_entropy, op, {logits}, tokens_, 1, saved);
  list_.tensors[static_cast<std::size_t>(logits)].element_bytes = 4;
  list_.nodes.push_back({Site::cross_entropy, op, {logits}, softmax, saved});
  return softmax;
}

TensorId LayerBuilder::mlp(TensorId x, TensorId kept) { return mlp(x, kept, model_.ffn_hidden); }

TensorId LayerBuilder::mlp(TensorId x, TensorId kept, std::int64_t width) {
  const std::int64_t ffn = width / context_.tp;
  const std::int64_t inner = ffn * model_.gates();
  const TensorId up = linear(model_.gated_mlp ? Site::mlp_gate_and_up : Site::mlp_up, x, kept,
                             inner, model_.hidden, model_.linear_bias);
  const bool fused_bias = context_.fused_bias_activation || !model_.linear_bias;
  const TensorId act = add(Site::activation, Activation{tokens_, ffn, model_.gated_mlp, fused_bias},
                           {up}, tokens_, ffn, {up});
  return linear(Site::mlp_down, act, act, model_.hidden, ffn, model_.linear_bias);
}

namespace {

// An encoder attends without a mask; the decoder's layers and the loss use the decoder's tokens.
LayerContext stack_context(LayerKind kind, LayerContext context) {
  if (kind == LayerKind::encoder || kind == LayerKind::embedding) {
    context.causal_skip = context.triangular_softmax = false;
  } else {
    context.sequence = context.decoder_sequence;
  }
  return context;
}

}  // namespace

OpList build_layer(LayerKind kind, const ModelSpec& model, const LayerContext& context) {
  const bool two_stacks = model.encoder_decoder();
  const LayerContext own = two_stacks ? stack_context(kind, context) : context;
  LayerBuilder builder(model, own, two_stacks ? context.sequence : 0);
  switch (kind) {
    case LayerKind::embedding: return builder.embedding();
    case LayerKind::block: return model.state_size > 0 ? builder.scan_layer() : builder.block();
    case LayerKind::head: return builder.head();
    case LayerKind::moe: return builder.moe();
    case LayerKind::encoder: return builder.block();
    case LayerKind::decoder:
      return LayerBuilder(model.as_decoder(), own, context.sequence).decoder();
    case LayerKind::decoder_embedding:
      return LayerBuilder(model.as_decoder(), own, context.sequence).decoder_embedding();
    case LayerKind::mtp_start: return builder.mtp_start();
    case LayerKind::scan: return builder.scan_layer();
    case LayerKind::attention: return builder.attention_layer();
    case LayerKind::mlp: return builder.mlp_layer();
    case LayerKind::experts: return builder.expert_layer();
  }
  return {};
}

double weights_of(const OpList& list) {
  double sum = 0;
  for (const Node& node : list.nodes) sum += weights_of(node.op);
  return sum;
}

double partial_weights(const OpList& list, const LayerContext& context) {
  if (context.tp == 1) return 0;
  const bool cut = context.sequence_parallel;
  double sum = 0;
  for (const Node& node : list.nodes) {
    sum += std::visit(
        Visitor{[&](const Norm& o) {  // a gated norm's gains are cut themselves
                  const bool whole = node.inputs.size() == 1;
                  return whole && (cut || o.gains > 1) ? weights_of(node.op) : 0.0;
                },
                [&](const BiasDropoutAdd& o) {
                  return cut && o.bias ? static_cast<double>(o.cols) : 0.0;
                },
                [&](const PositionEmbedding&) {  // a table of relative positions is cut by heads
                  return cut && !node.inputs.empty() ? weights_of(node.op) : 0.0;
                },
                [](const auto&) { return 0.0; }},
        node.op);
  }
  return sum;
}

}  // namespace costmodel
