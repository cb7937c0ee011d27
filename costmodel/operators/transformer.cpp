#include "costmodel/operators/transformer.hpp"

#include <fmt/format.h>

#include "costmodel/operators/layer_builder.hpp"
#include "costmodel/operators/tower_layers.hpp"

namespace costmodel {

TensorId LayerBuilder::embedded() {
  const TensorId ids = tensor("token ids", tokens_, 1, TensorRole::statistics, 8);
  const std::int64_t vocab = padded_vocab(model_.vocab, context_.tp) / context_.tp;
  const std::int64_t width = model_.embedding_width();
  TensorId x =
      add(Site::token_embedding, Embedding{tokens_, width, vocab}, {ids}, tokens_, width, {ids});
  x = join(x, width);
  if (model_.embedding_dim > 0)
    x = linear(Site::embedding_projection, x, x, local_tokens_, model_.hidden, width, false);
  if (model_.token_types > 0) {
    x = add(Site::token_types, PositionEmbedding{local_tokens_, model_.hidden, model_.token_types},
            {x}, local_tokens_, model_.hidden);
  }
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
  return in_stream(x);
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
  const TensorId x = layer_input();
  const TensorId next = norm(Site::next_tokens_norm, embedded(), h);
  const TensorId own = norm(Site::hidden_norm, x, h);
  const TensorId both =
      add(Site::concatenation, Permute{local_tokens_, 2 * h, 1}, {own, next}, local_tokens_, 2 * h);
  const TensorId out =
      linear(Site::mtp_projection, split(both), both, h / context_.tp, 2 * h, false);
  return finish(x, join(out));
}

OpList LayerBuilder::block(const Block& own) {
  mixer_ = own.mixer;
  if (own.mixer == Mixer::window) window_ = model_.sliding_window;
  if (own.mixer == Mixer::chunked) window_ = model_.attention_chunk;
  if (own.mixer == Mixer::sparse) window_ = model_.index_topk;
  const TensorId x = layer_input();
  if (own.mixer == Mixer::decoder) return decoder_block(x);
  const bool dense = own.feed_forward == FeedForward::dense;
  if (model_.parallel_block && dense && own.mixer != Mixer::none) return parallel_block(x);
  const TensorId mixed = own.mixer == Mixer::none   ? x
                         : own.mixer == Mixer::scan ? after_scan(x)
                                                    : after_attention(x);
  if (own.feed_forward == FeedForward::none) return finish(x, mixed);
  return finish(x, dense ? after_mlp(mixed) : after_experts(mixed));
}

OpList LayerBuilder::parallel_block(TensorId x) {
  const TensorId normed = norm(Site::attention_norm, x, model_.hidden);
  const TensorId normed_mlp = model_.shared_norm ? normed : norm(Site::mlp_norm, x, model_.hidden);
  const TensorId from_attention = attention(normed);
  const TensorId from_mlp = mlp(split(normed_mlp), normed_mlp);
  const TensorId sum =
      add(Site::branch_sum, BiasDropoutAdd{tokens_, model_.hidden, false, false, true},
          {from_attention, from_mlp}, tokens_, model_.hidden);
  return finish(x, residual(Site::residual, join(sum), x));
}

TensorId LayerBuilder::before_branch(Site site, TensorId x) {
  const NormPlacement place = model_.norm_placement;
  const bool here = place == NormPlacement::before || place == NormPlacement::both;
  return here ? layer_norm(site, x) : x;
}

TensorId LayerBuilder::after_branch(Site residual_site, Site norm_site, TensorId result,
                                    TensorId x) {
  const NormPlacement place = model_.norm_placement;
  if (place == NormPlacement::both || place == NormPlacement::branch)
    result = layer_norm(norm_site, result);
  const TensorId sum = residual(residual_site, result, x);
  return place == NormPlacement::after ? layer_norm(norm_site, sum) : sum;
}

TensorId LayerBuilder::mixed(TensorId normed) {
  switch (mixer_) {
    case Mixer::delta: return delta_net(normed);
    case Mixer::kimi_delta: return kimi_delta(normed);
    case Mixer::lightning: return lightning(normed);
    case Mixer::rwkv: return rwkv(normed);
    case Mixer::short_conv: return short_convolution(normed);
    case Mixer::parallel: return attention_and_scan(normed);
    case Mixer::scan: return scan(normed);
    case Mixer::none: return normed;
    case Mixer::attention:
    case Mixer::window:
    case Mixer::chunked:
    case Mixer::sparse:
    case Mixer::encoder:
    case Mixer::decoder: return attention(normed);
  }
  return normed;
}

// What a graph captures with each part (Megatron-LM, transformer_layer.py,
// _get_submodules_under_cudagraphs and _te_cuda_graph_capture): its norm, with attention and a
// dense MLP the residual too, with the router the shared experts unless they compute while rows are
// exchanged.
TensorId LayerBuilder::after_attention(TensorId x) {
  const std::size_t own = list_.nodes.size();
  const TensorId normed = before_branch(Site::attention_norm, x);
  const TensorId sum =
      after_branch(Site::attention_residual, Site::attention_result_norm, join(mixed(normed)), x);
  capture(own, GraphScope::attention);
  return sum;
}

TensorId LayerBuilder::after_mlp(TensorId x) {
  const std::size_t first = list_.nodes.size();
  const TensorId normed = before_branch(Site::mlp_norm, x);
  const std::size_t own = list_.nodes.size();
  const TensorId out = join(mlp(split(normed), normed));
  mark(own, Region::dense_mlp);
  const TensorId sum = after_branch(Site::mlp_residual, Site::mlp_result_norm, out, x);
  capture(first, GraphScope::mlp);
  return sum;
}

OpList LayerBuilder::decoder_block(TensorId x) {
  const std::int64_t h = model_.hidden;
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

TensorId LayerBuilder::after_experts(TensorId x) {
  const std::size_t first = list_.nodes.size();
  const TensorId normed = before_branch(Site::mlp_norm, x);
  capture(first, GraphScope::router);
  const std::size_t routed = list_.nodes.size();
  TensorId out = -1;
  if (model_.expert_norms) {  // the MLP that every token uses has the layer's norm
    const TensorId scored = layer_norm(Site::mlp_norm, x);
    out = layer_norm(Site::mlp_result_norm, experts(layer_norm(Site::mlp_norm, x), scored));
  } else {
    out = experts(normed, normed);
  }
  mark(routed, Region::experts);
  if (model_.shared_experts > 0) {
    const std::size_t own = list_.nodes.size();
    // Concurrent with the exchange they keep what they gathered (Megatron-LM, core/transformer/moe/
    // shared_experts.py, pre_forward_comm).
    const TensorId gathered = split(normed);
    TensorId shared =
        join(mlp(gathered, context_.shared_overlap ? gathered : normed, model_.shared_ffn()));
    if (model_.shared_expert_gate) {
      const TensorId gate =
          add(Site::shared_expert_gate, Linear{local_tokens_, 1, model_.hidden, false, false},
              {normed}, local_tokens_, 1, {normed});
      shared = add(Site::shared_expert_gate, Activation{local_tokens_, model_.hidden, false, true},
                   {shared, gate}, local_tokens_, model_.hidden, {shared, gate});
    }
    if (model_.expert_norms) shared = layer_norm(Site::mlp_result_norm, shared);
    mark(own, Region::shared_experts);
    if (!context_.shared_overlap) capture(own, GraphScope::router);
    out = add(Site::expert_sum, BiasDropoutAdd{local_tokens_, model_.hidden, false, false, true},
              {out, shared}, local_tokens_, model_.hidden);
  }
  return after_branch(Site::mlp_residual, Site::mlp_result_norm, out, x);
}

OpList LayerBuilder::head() {
  const TensorId x = layer_input();
  const std::int64_t width = model_.embedding_width();
  TensorId normed = model_.final_norm() ? norm(Site::final_norm, x, model_.hidden) : x;
  if (model_.head_transform || model_.pooler) normed = head_of_encoder(normed);
  if (model_.embedding_dim > 0) {
    normed =
        linear(Site::head_projection, normed, normed, local_tokens_, width, model_.hidden, false);
  }
  const TensorId whole = split(normed);
  const std::int64_t vocab = padded_vocab(model_.vocab, context_.tp) / context_.tp;
  const TensorId logits = linear(Site::logits, whole, normed, vocab, width, model_.head_transform);
  // Maximum, exponential sum, loss and target of each row.
  const TensorId labels = tensor("labels", tokens_, 1, TensorRole::statistics, 8);
  const TensorId rows = tensor("logit statistics", tokens_, 3, TensorRole::statistics, 4);
  const bool narrow = keeps_narrow(context_.loss);
  const TensorId loss = narrow
                            ? add(Site::cross_entropy, CrossEntropy{tokens_, vocab, context_.loss},
                                  {logits}, tokens_, 1, {logits, labels, rows})
                            : wide_loss(logits, vocab, {labels, rows});
  if (context_.tp > 1) exchange_rows(loss);
  return finish(x, loss);
}

// What tensor ranks tell each other of their shares of a row, in fp32: Transformer Engine gathers
// three numbers, Megatron's fusion sums two of them at once, the others reduce each alone.
void LayerBuilder::exchange_rows(TensorId loss) {
  const auto exchange = [&](Site site, CollectiveKind kind, double numbers) {
    const Bytes bytes(static_cast<double>(tokens_) * 4 * numbers);
    list_.nodes.push_back(
        {site, Collective{kind, CollectiveKind::none, Axis::tensor, bytes}, {loss}, loss, {}});
  };
  if (context_.loss == LossKernel::te)
    return exchange(Site::logit_statistics, CollectiveKind::all_gather, 3.0 * context_.tp);
  exchange(Site::logits_maximum, CollectiveKind::all_reduce, 1);
  if (context_.loss == LossKernel::native)
    return exchange(Site::logit_statistics, CollectiveKind::all_reduce, 2);
  exchange(Site::target_logit, CollectiveKind::all_reduce, 1);
  exchange(Site::exponential_sum, CollectiveKind::all_reduce, 1);
}

// Every tensor rank transforms its tokens with the same weights (Megatron-LM,
// core/models/bert/bert_lm_head.py); the pooler reads the first token of each sequence.
TensorId LayerBuilder::head_of_encoder(TensorId x) {
  const std::int64_t h = model_.hidden;
  if (model_.pooler) {
    const std::int64_t b = context_.micro_batch;
    add(Site::pooler, Linear{b, h, h, true, false}, {x}, b, h, {x});
  }
  if (!model_.head_transform) return x;
  const TensorId out = linear(Site::head_transform, x, x, local_tokens_, h, h, true);
  const TensorId act = add(Site::head_activation, Activation{local_tokens_, h, false, true}, {out},
                           local_tokens_, h, {out});
  return norm(Site::head_norm, act, h);
}

// Megatron computes the softmax, and in backward its gradient, in one fp32 buffer
// (core/tensor_parallel/cross_entropy.py: exp(out=...), grad_input = softmax). PyTorch's
// cross-entropy of fp32 logits has three: log-softmax, its gradient, and that of the fp32 logits
// (lifetimes.cpp), which are a copy.
TensorId LayerBuilder::wide_loss(TensorId logits, std::int64_t vocab, std::vector<TensorId> saved) {
  const bool in_place = !context_.fp32_logits || context_.loss == LossKernel::native;
  const CrossEntropy op{tokens_, vocab, context_.loss};
  const TensorId softmax = tensor("fp32 softmax of logits", tokens_, vocab,
                                  in_place ? TensorRole::beside : TensorRole::activation, 4);
  saved.insert(saved.begin(), softmax);
  if (in_place) return add(Site::cross_entropy, op, {logits}, tokens_, 1, saved);
  list_.nodes.push_back({Site::cross_entropy, op, {logits}, softmax, saved});
  return softmax;
}

// Where each of the products that take a norm's result keeps a copy for itself, the list has one.
std::optional<double> LayerBuilder::copies_of_norm(int products) const {
  if (context_.element >= 4) return std::nullopt;  // no cast
  const auto each = keeps(KernelOp::after_norm);
  return each ? std::optional(*each * (products - 1)) : std::nullopt;
}

TensorId LayerBuilder::mlp(TensorId x, TensorId kept) { return mlp(x, kept, model_.ffn_hidden); }

TensorId LayerBuilder::mlp(TensorId x, TensorId kept, std::int64_t width) {
  const std::int64_t ffn = width / context_.tp;
  const std::int64_t inner = ffn * model_.gates();
  TensorId up = linear(model_.gated_mlp ? Site::mlp_gate_and_up : Site::mlp_up, x, kept, inner,
                       model_.hidden, model_.linear_bias);
  if (model_.gated_mlp) keep("norm's copies", tokens_, model_.hidden, copies_of_norm(2));
  up = column_adapters(up, x, {{AdapterTarget::gate, ffn}, {AdapterTarget::up, ffn}});
  const bool fused_bias = context_.fused_bias_activation || !model_.linear_bias;
  const TensorId act = add(Site::activation, Activation{tokens_, ffn, model_.gated_mlp, fused_bias},
                           {up}, tokens_, ffn, {up});
  if (model_.gated_mlp) keep("activated gate", tokens_, ffn, keeps(KernelOp::gated_activation));
  row_adapter(act, AdapterTarget::down);
  return linear(Site::mlp_down, act, act, model_.hidden, ffn, model_.linear_bias);
}

namespace {

// An encoder attends without a mask; the decoder's layers and the loss use the decoder's tokens.
LayerContext stack_context(LayerKind kind, LayerContext context) {
  if (kind.its.mixer == Mixer::encoder || kind == LayerKind::embedding) {
    context.causal_skip = context.triangular_softmax = false;
  } else {
    context.sequence = context.decoder_sequence;
  }
  return context;
}

LayerContext without_mask(LayerContext context) {
  context.causal_skip = context.triangular_softmax = false;
  return context;
}

OpList build(LayerKind kind, LayerBuilder& builder) {
  switch (kind.part) {
    case Part::embedding: return builder.embedding();
    case Part::block: return builder.block(kind.its);
    case Part::head: return builder.head();
    case Part::decoder_embedding: return builder.decoder_embedding();
    case Part::mtp_start: return builder.mtp_start();
    case Part::tower_stem:
    case Part::tower_layer:
    case Part::projector:
    case Part::branch: break;  // tower_layers.cpp
  }
  return {};
}

}  // namespace

std::string describe(LayerKind kind) {
  switch (kind.part) {
    case Part::embedding: return "embedding";
    case Part::block: return describe(kind.its);
    case Part::head: return "head";
    case Part::decoder_embedding: return "decoder embedding";
    case Part::mtp_start: return "multi-token prediction";
    case Part::tower_stem: return fmt::format("{} stem", tower_names[kind.tower]);
    case Part::tower_layer:
      return fmt::format("{} tower{}", tower_names[kind.tower], row_of(kind.its.mixer).suffix);
    case Part::projector: return fmt::format("{} projector", tower_names[kind.tower]);
    case Part::branch: return fmt::format("{} branch", tower_names[kind.tower]);
  }
  return {};
}

OpList build_layer(LayerKind kind, const ModelSpec& model, const LayerContext& context) {
  if (kind.of_tower()) return build_tower_part(kind, model, context);
  const bool two_stacks = model.encoder_decoder();
  const LayerContext own = two_stacks     ? stack_context(kind, context)
                           : model.causal ? context
                                          : without_mask(context);
  const std::int64_t encoded = two_stacks ? context.sequence : 0;
  const bool decodes = kind.its.mixer == Mixer::decoder || kind == LayerKind::decoder_embedding;
  const bool windowed = kind.its.mixer == Mixer::window && model.windows_differ();
  if (decodes || windowed) {
    const ModelSpec its = decodes ? model.as_decoder() : model.as_windowed();
    LayerBuilder builder(its, own, encoded);  // refers to it
    return build(kind, builder);
  }
  LayerBuilder builder(model, own, encoded);
  return build(kind, builder);
}

double weights_of(const OpList& list) {
  double sum = 0;
  for (const Node& node : list.nodes) sum += weights_of(node.op);
  return sum;
}

double partial_weights(const OpList& list, const LayerContext& context) {
  if (context.tp == 1 || list.adapted) return 0;
  const bool cut = context.sequence_parallel;
  double sum = 0;
  for (const Node& node : list.nodes) {
    sum += std::visit(
        Visitor{[&](const Norm& o) {  // a gated norm's gains are cut themselves
                  const bool cut_gains = node.site == Site::qk_norm && o.gains == 1;
                  const bool whole = node.inputs.size() == 1 && !cut_gains;
                  return whole && (cut || o.gains > 1) ? weights_of(node.op) : 0.0;
                },
                [&](const BiasDropoutAdd& o) {
                  return cut && o.bias ? static_cast<double>(o.cols) : 0.0;
                },
                [&](const PositionEmbedding&) {  // a table of relative positions is cut by heads
                  return cut && !node.inputs.empty() ? weights_of(node.op) : 0.0;
                },
                [&](const Linear&) {  // products that every rank has on its own tokens
                  const bool own = node.site == Site::head_transform ||
                                   node.site == Site::embedding_projection ||
                                   node.site == Site::head_projection;
                  return cut && own ? weights_of(node.op) : 0.0;
                },
                [](const auto&) { return 0.0; }},
        node.op);
  }
  return sum;
}

std::vector<MatrixShape> trained_matrices(const OpList& list) {
  std::vector<MatrixShape> shapes;
  for (const Node& node : list.nodes) {
    if (node.frozen()) continue;
    if (const auto* own = std::get_if<Linear>(&node.op)) shapes.emplace_back(own->n, own->k);
    if (const auto* own = std::get_if<GroupedLinear>(&node.op)) shapes.emplace_back(own->n, own->k);
  }
  return shapes;
}

double elements_by_shape(std::vector<MatrixShape> shapes) {
  std::ranges::sort(shapes);
  // Clang has no ranges::unique with the standard library of GCC 12.
  shapes.erase(std::unique(shapes.begin(), shapes.end()), shapes.end());
  double sum = 0;
  for (const auto& [rows, cols] : shapes) sum += static_cast<double>(rows * cols);
  return sum;
}

}  // namespace costmodel
