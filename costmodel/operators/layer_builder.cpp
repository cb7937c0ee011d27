#include "costmodel/operators/layer_builder.hpp"

#include <utility>

namespace costmodel {

LayerBuilder::LayerBuilder(const ModelSpec& model, const LayerContext& context,
                           std::int64_t encoder_sequence)
    : model_(model),
      context_(context),
      encoder_sequence_(encoder_sequence),
      tokens_(context.micro_batch * context.sequence / context.cp),
      local_tokens_(local(tokens_)),
      dropout_(model.dropout > 0),
      window_(model.attention_pattern.empty() ? model.sliding_window : 0) {
  list_.nodes.reserve(24);
  list_.tensors.reserve(40);
}

LayerBuilder& LayerBuilder::with_window() {
  window_ = model_.sliding_window;
  return *this;
}

LayerBuilder& LayerBuilder::with_delta_net() {
  delta_net_ = true;
  return *this;
}

std::int64_t LayerBuilder::local(std::int64_t tokens) const {
  return context_.sequence_parallel ? ceil_div(tokens, context_.tp) : tokens;
}

TensorId LayerBuilder::tensor(std::string_view name, std::int64_t rows, std::int64_t cols,
                              TensorRole role, double element) {
  list_.tensors.push_back({name, rows, cols, element > 0 ? element : context_.element, role});
  return static_cast<TensorId>(list_.tensors.size() - 1);
}

TensorId LayerBuilder::add(Site site, const Op& op, std::vector<TensorId> inputs, std::int64_t rows,
                           std::int64_t cols, std::vector<TensorId> saved, Region region) {
  const TensorId out = tensor(name_of(site), rows, cols);
  list_.nodes.push_back({site, op, std::move(inputs), out, std::move(saved), region});
  return out;
}

TensorId LayerBuilder::norm(Site site, TensorId x, std::int64_t cols) {
  const std::int64_t rows = list_.tensors[static_cast<std::size_t>(x)].rows;
  const std::int64_t figures = model_.normalization == Normalization::layernorm ? 2 : 1;
  const TensorId statistics = tensor("norm statistics", rows, figures, TensorRole::statistics, 4);
  return add(site, Norm{rows, cols, model_.normalization}, {x}, rows, cols, {x, statistics});
}

TensorId LayerBuilder::layer_norm(Site site, TensorId x) {
  const TensorId out = norm(site, x, model_.hidden);
  list_.nodes.back().region = Region::norm;
  return out;
}

void LayerBuilder::mark(std::size_t first, Region region) {
  for (std::size_t i = first; i < list_.nodes.size(); ++i) {
    if (list_.nodes[i].region == Region::rest) list_.nodes[i].region = region;
  }
}

Bytes LayerBuilder::size_of(std::int64_t rows, std::int64_t cols) const {
  return Bytes(static_cast<double>(rows) * static_cast<double>(cols) * context_.element);
}

TensorId LayerBuilder::split(TensorId x, std::int64_t tokens) {
  if (context_.tp == 1) return x;
  const std::int64_t cols = list_.tensors[static_cast<std::size_t>(x)].cols;
  const Bytes message = size_of(tokens, cols);
  const auto forward =
      context_.sequence_parallel ? CollectiveKind::all_gather : CollectiveKind::none;
  const auto backward =
      context_.sequence_parallel ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce;
  if (forward ==
      CollectiveKind::none) {  // forward is the identity: the same tensor, no copy is made
    list_.nodes.push_back({Site::enter_tensor_parallel,
                           Collective{forward, backward, Axis::tensor, message},
                           {x},
                           x,
                           {}});
    return x;
  }
  return add(Site::enter_tensor_parallel, Collective{forward, backward, Axis::tensor, message}, {x},
             tokens, cols);
}

TensorId LayerBuilder::join(TensorId x, std::int64_t columns) {
  if (context_.tp == 1) return x;
  const auto forward =
      context_.sequence_parallel ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce;
  const auto backward =
      context_.sequence_parallel ? CollectiveKind::all_gather : CollectiveKind::none;
  return add(Site::leave_tensor_parallel,
             Collective{forward, backward, Axis::tensor, size_of(tokens_, columns)}, {x},
             local_tokens_, columns);
}

TensorId LayerBuilder::linear(Site site, TensorId x, TensorId kept, std::int64_t rows,
                              std::int64_t n, std::int64_t k, bool bias) {
  const bool regather = context_.sequence_parallel && kept != x;
  if (context_.saved_input > 0) {  // the cast operand is kept, not what it was cast from
    const std::int64_t held = list_.tensors[static_cast<std::size_t>(kept)].rows;
    kept = tensor("narrow input", held, k, TensorRole::activation, context_.saved_input);
  }
  return add(site, Linear{rows, n, k, bias, regather}, {x}, rows, n, {kept});
}

// The residual adds the bias of the product that made `x`; a collective may be in between.
void LayerBuilder::leave_bias(TensorId x) {
  for (auto node = list_.nodes.rbegin(); node != list_.nodes.rend(); ++node) {
    if (node->output != x) continue;
    if (auto* product = std::get_if<Linear>(&node->op)) product->bias_in_residual = true;
    if (!std::holds_alternative<Collective>(node->op)) return;
    x = node->inputs.front();
  }
}

TensorId LayerBuilder::residual(Site site, TensorId x, TensorId skip) {
  const BiasDropoutAdd op{local_tokens_, model_.hidden, model_.linear_bias, dropout_,
                          context_.fused_bias_dropout_add};
  if (op.bias) leave_bias(x);
  const TensorId out = add(site, op, {x, skip}, local_tokens_, model_.hidden);
  if (dropout_) {
    const TensorId mask = tensor("dropout mask", local_tokens_, model_.hidden, TensorRole::mask, 1);
    list_.nodes.back().saved.push_back(mask);
  }
  return out;
}

OpList LayerBuilder::finish(TensorId input, TensorId output) {
  list_.input = input;
  list_.output = output;
  return std::move(list_);
}

}  // namespace costmodel
