#include "costmodel/operators/tower_layers.hpp"

#include <algorithm>
#include <span>

#include "costmodel/operators/layer_builder.hpp"

namespace costmodel {

namespace {

bool is_product(const StepShape& shape) { return shape.step.kind == StepKind::linear; }

// Whether the next product after step i reads what it makes, but for an activation in between.
bool feeds_product(std::span<const StepShape> steps, std::size_t i) {
  for (++i; i < steps.size(); ++i) {
    const StepKind kind = steps[i].step.kind;
    if (kind != StepKind::gelu && kind != StepKind::silu) return is_product(steps[i]);
  }
  return false;
}

const TowerSpec& tower_of(LayerKind kind, const ModelSpec& model) {
  const auto towers = towers_of(model);
  return *std::ranges::find(towers, static_cast<TowerInput>(kind.tower), &TowerSpec::input);
}

// No mask, no samples of their own, no adapters; every rank has all tokens.
LayerContext tower_context(const TowerSpec& tower, LayerContext context) {
  if (!is_cut(tower, context.tp)) context.tp = 1;
  context.cp = 1;
  context.sequence_parallel = false;
  context.causal_skip = context.triangular_softmax = false;
  context.tuning = {};
  context.attended = 0;
  context.micro_batch *= std::max<std::int64_t>(1, context.towers.number_of(tower));
  return context;
}

// Of what is not trained, and of what nothing before is: no weight gradients, no input gradients.
void leave_out_gradients(bool trained, bool input_trained, double element, OpList& list) {
  if (trained && input_trained) return;
  list.adapted = true;
  list.input_trained = input_trained;
  for (Node& node : list.nodes) {
    if (trained) continue;
    node.frozen_bytes = element;
    if (is_product(node.op)) node.saved.clear();
  }
  const std::vector<bool> gradient = with_gradient(list);
  for (Node& node : list.nodes) {
    if (!gradient[static_cast<std::size_t>(node.output)]) node.saved.clear();
  }
}

}  // namespace

// Everything but a product; `rows` and `columns` are those of x.
TensorId LayerBuilder::step(const StepShape& s, TensorId x) {
  const TensorInfo& read = list_.tensors[static_cast<std::size_t>(x)];
  const std::int64_t rows = read.rows, columns = read.cols, size = s.step.size;
  const std::int64_t out = context_.micro_batch * s.out_rows;
  switch (s.step.kind) {
    case StepKind::linear: break;
    case StepKind::convolution:
      return linear(Site::tower_product, x, x, out, s.out_columns, columns * s.step.taps, true);
    case StepKind::gated: {
      const TensorId up = linear(Site::mlp_gate_and_up, x, x, rows, 2 * size, columns, false);
      const TensorId act =
          add(Site::activation, Activation{rows, size, true, true}, {up}, rows, size, {up});
      return linear(Site::mlp_down, act, act, rows, columns, size, false);
    }
    case StepKind::tokens:
      return add(Site::tower_tokens, PositionEmbedding{out, columns, size}, {x}, out, columns);
    case StepKind::positions:
      return add(Site::position_embedding, PositionEmbedding{rows, columns, size}, {x}, rows,
                 columns);
    case StepKind::layernorm: return norm(Site::tower_norm, x, columns, Normalization::layernorm);
    case StepKind::rmsnorm: return norm(Site::tower_norm, x, columns, Normalization::rmsnorm);
    case StepKind::gelu:
    case StepKind::silu:
      return add(Site::tower_activation,
                 Activation{rows, columns, false, context_.fused_bias_activation}, {x}, rows,
                 columns, {x});
    case StepKind::drop:
    case StepKind::merge:
      return add(Site::tower_merge, Permute{out, s.out_columns, 1}, {x}, out, s.out_columns);
    case StepKind::pool:
      return add(Site::tower_merge, Permute{out, columns, size, true}, {x}, out, columns);
  }
  return x;
}

// Two products with an activation between them are cut as an MLP is: the first by columns, the
// second by rows.
OpList LayerBuilder::steps(std::span<const StepShape> steps, bool places) {
  const std::int64_t inputs = context_.micro_batch, t = context_.tp;
  const TensorId input =
      tensor("tower's input", inputs * steps.front().rows, steps.front().columns);
  TensorId x = input;
  bool cut = false;  // the columns of x, over the tensor ranks
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const StepShape& s = steps[i];
    if (!is_product(s)) {
      x = step(s, x);
      continue;
    }
    const std::int64_t rows = inputs * s.rows, made = s.out_columns;
    const std::int64_t read = list_.tensors[static_cast<std::size_t>(x)].cols;
    const bool sums = cut;
    cut = !sums && t > 1 && made % t == 0 && feeds_product(steps, i);
    if (cut) x = split(x, rows);
    x = linear(Site::tower_product, x, x, rows, cut ? made / t : made, read, s.step.bias);
    if (!sums) continue;
    const auto reduce = CollectiveKind::all_reduce;
    x = add(Site::leave_tensor_parallel,
            Collective{reduce, CollectiveKind::none, Axis::tensor, size_of(rows, made)}, {x}, rows,
            made);
  }
  if (places) {
    const TensorInfo& last = list_.tensors[static_cast<std::size_t>(x)];
    const std::int64_t rows = last.rows, columns = last.cols;
    x = add(Site::tower_placement, Permute{rows, columns, 1}, {x}, rows, columns);
  }
  return finish(input, x);
}

bool is_cut(const TowerSpec& tower, int tp) {
  const ModelSpec& e = tower.encoder;
  return e.heads % tp == 0 && e.kv_heads % tp == 0 && e.ffn_hidden % tp == 0;
}

std::vector<TowerLayers> tower_layers(const ModelSpec& model) {
  std::vector<TowerLayers> all;
  for (const TowerSpec& tower : towers_of(model)) {
    const auto of = static_cast<std::size_t>(tower.input);
    const auto add = [&](LayerKind kind, std::int64_t number) {
      if (number > 0) all.push_back({kind, static_cast<int>(number)});
    };
    const std::int64_t windowed = tower.windowed_layers();
    add({Part::tower_stem, of}, tower.stem.empty() ? 0 : 1);
    add({Part::tower_layer, of, Mixer::window}, windowed);
    add({Part::tower_layer, of}, tower.encoder.layers - windowed);
    add({Part::branch, of}, tower.branches);
    add({Part::projector, of}, tower.projector.empty() ? 0 : 1);
  }
  return all;
}

OpList build_tower_part(LayerKind kind, const ModelSpec& model, const LayerContext& context) {
  const TowerSpec& tower = tower_of(kind, model);
  LayerContext own = tower_context(tower, context);
  const TowerTokens tokens = tokens_of(tower, context.towers.size_of(tower));
  own.sequence = tokens.encoder;
  const FineTuning& tuning = context.tuning;
  const bool encoder = tuning.trains(static_cast<ModelPiece>(tower.input)),
             projector = tuning.trains(ModelPiece::projector);
  OpList list;
  if (kind.part == Part::tower_layer) {
    const std::int64_t window = tower.window;
    if (kind.its.mixer == Mixer::window && window < tokens.encoder) {
      own.micro_batch *= ceil_div(tokens.encoder, window);
      own.sequence = window;
    }
    list = LayerBuilder(tower.encoder, own).block({Mixer::encoder, FeedForward::dense});
    leave_out_gradients(encoder, encoder, own.element, list);
    return list;
  }
  const bool stem = kind.part == Part::tower_stem;
  const auto& steps = stem                        ? tower.stem
                      : kind.part == Part::branch ? tower.branch
                                                  : tower.projector;
  const std::int64_t rows = stem ? tokens.input : tokens.encoder,
                     columns = stem ? tower.input_width() : tower.encoder.hidden;
  list = LayerBuilder(tower.encoder, own).steps(shapes_of(steps, rows, columns), !stem);
  if (stem) {
    leave_out_gradients(encoder, false, own.element, list);
    list.input = -1;
  } else {
    leave_out_gradients(projector, encoder, own.element, list);
  }
  return list;
}

}  // namespace costmodel
