#include "runtime/training/layer_runner.hpp"

#include <algorithm>
#include <utility>

#include "costmodel/base/error.hpp"

namespace runtime {

using namespace costmodel;

// The state of one pass; gradients exist in the backward only.
struct LayerRunner::Pass {
  const LayerRun& run;
  HeldTensors gradients;
  HeldTensors replaced;            // recomputed while the first copy is still held
  HeldTensors* pending = nullptr;  // of a split backward: see input_gradients()

  const OpList& list() const { return run.program.list; }
  const TensorInfo& info(TensorId id) const { return list().tensors[static_cast<std::size_t>(id)]; }
  Block& tensor(TensorId id) { return run.held[static_cast<std::size_t>(id)]; }
  Block& gradient(TensorId id) { return gradients[static_cast<std::size_t>(id)]; }
};

namespace {

Tensor view(const Block& block) { return {block.data(), block.bytes()}; }

// The exchanges of the cross-entropy follow it in the list and run together with it.
bool belongs_to_cross_entropy(const Node& node) {
  const auto* collective = std::get_if<Collective>(&node.op);
  return collective != nullptr && collective->forward != CollectiveKind::none && in_place(node);
}

template <std::size_t Most>
void fill(std::array<Tensor, Most>& tensors, const std::vector<TensorId>& ids, HeldTensors& from) {
  SHARDPLAN_CHECK(ids.size() <= Most);
  for (std::size_t i = 0; i < ids.size(); ++i)
    tensors[i] = view(from[static_cast<std::size_t>(ids[i])]);
}

template <class Values>
Values part_of(const LayerParameters& layout, int parameter, Values all) {
  if (parameter < 0) return {};
  const Parameter& p = layout.tensors[static_cast<std::size_t>(parameter)];
  return all.subspan(p.offset, p.size());
}

}  // namespace

LayerRunner::LayerRunner(Device& device, Number number, Communicator& tensor_group, int tag,
                         Arena& arena)
    : device_(device),
      number_(number),
      tensor_(tensor_group),
      tag_(tag),
      arena_(arena),
      loss_sum_(static_cast<double*>(arena.memory().allocate(sizeof(double)))) {
  clear_loss();
}

LayerRunner::~LayerRunner() { arena_.memory().release(loss_sum_); }

void LayerRunner::clear_loss() { arena_.memory().clear(loss_sum_, sizeof(double)); }

double LayerRunner::loss_sum() const {
  double sum = 0;
  arena_.memory().read(loss_sum_, std::as_writable_bytes(std::span(&sum, 1)));
  return sum;
}

Vector LayerRunner::vector_of(const TensorInfo& info, const Tensor& tensor) const {
  const Number number = info.element_bytes == 2 ? number_ : Number::f32;
  return {tensor.data, tensor.bytes / bytes_of(number), number};
}

Block LayerRunner::take(const TensorInfo& info) {
  return arena_.take(MemoryKind::activations, static_cast<std::size_t>(info.bytes().value));
}

// A call with all existing tensors that the node may read or write.
OpCall LayerRunner::call_of(Pass& pass, std::size_t index) {
  const LayerProgram& program = pass.run.program;
  const Node& node = program.list.nodes[index];
  OpCall call{.node = node, .place = pass.run.place};
  fill(call.inputs, node.inputs, pass.run.held);
  fill(call.saved, node.saved, pass.run.held);
  call.output = view(pass.tensor(node.output));
  if (!pass.gradients.empty()) {
    fill(call.input_gradients, node.inputs, pass.gradients);
    call.output_gradient = view(pass.gradient(node.output));
  }
  const bool logits = node.site == Site::logits;
  LayerState& state = logits && pass.run.table != nullptr ? *pass.run.table : pass.run.state;
  NodeParameters used = pass.run.state.layout().nodes[index];
  if (logits && pass.run.table != nullptr) used.matrix = 0;  // the table is its layer's first
  const bool backward = !pass.gradients.empty();
  const int of_product = program.bias_of[index];
  if (of_product == -2 && !(backward && program.sums_bias[index])) used.bias = -1;
  if (of_product >= 0) {
    const auto product = static_cast<std::size_t>(of_product);
    const bool summed_there = backward && program.sums_bias[product];
    used.bias = summed_there ? -1 : pass.run.state.layout().nodes[product].bias;
  }
  if (used.matrix < 0 && used.bias < 0) return call;
  call.matrix = part_of(state.layout(), used.matrix, state.weights());
  call.bias = part_of(state.layout(), used.bias, state.weights());
  if (backward) {
    call.matrix_gradient = part_of(state.layout(), used.matrix, state.gradients());
    call.bias_gradient = part_of(state.layout(), used.bias, state.gradients());
  }
  call.table_layout = logits;
  return call;
}

void LayerRunner::collective(CollectiveKind kind, const Vector& in, const Vector& out) {
  const Group& group = tensor_.group();
  const auto own = [&](const Vector& all) {
    const Chunk chunk = chunk_of(all.size, group.size(), group.position);
    return all.subspan(chunk.begin, chunk.size);
  };
  const auto copy = [&](const Vector& a, const Vector& b) {
    if (a.data != b.data) arena_.memory().copy(a, b);
  };
  switch (kind) {
    case CollectiveKind::none: return copy(in, out);
    case CollectiveKind::all_reduce:
      copy(in, out);
      return tensor_.all_reduce(out, Reduction::sum, tag_);
    case CollectiveKind::all_gather: copy(in, own(out)); return tensor_.all_gather(out, tag_);
    case CollectiveKind::reduce_scatter:
      tensor_.reduce_scatter(in, Reduction::sum, tag_);
      return copy(own(in), out);
    default: SHARDPLAN_CHECK(!"a collective that the runtime does not take");
  }
}

// Masks and statistics are allocated by the node that keeps them; token ids and labels come from
// the data.
void LayerRunner::make_statistics(Pass& pass, const Node& node) {
  for (const TensorId id : node.saved) {
    if (pass.info(id).role == TensorRole::activation) continue;
    pass.tensor(id) = take(pass.info(id));
  }
  const bool labels = std::holds_alternative<CrossEntropy>(node.op);
  if (!labels && !std::holds_alternative<Embedding>(node.op)) return;
  const Place& place = pass.run.place;
  arena_.memory().draw_tokens({.seed = place.seed,
                               .first_sample = place.first_sample,
                               .sequences = place.sequences,
                               .sequence = place.sequence,
                               .vocab = place.vocab,
                               .labels = labels},
                              view(pass.tensor(node.saved[labels ? 1 : 0])).ids());
}

void LayerRunner::cross_entropy(const OpCall& call) {
  const auto rows = call.saved[2].floats();
  const std::size_t n = rows.size() / 3;
  device_.logits_maximum(call);
  if (tensor_.group().size() > 1) tensor_.all_reduce(rows.first(n), Reduction::max, tag_);
  device_.logits_exponentials(call);
  if (tensor_.group().size() > 1) {
    tensor_.all_reduce(rows.subspan(n, n), Reduction::sum, tag_);
    tensor_.all_reduce(rows.last(n), Reduction::sum, tag_);
  }
  device_.logits_loss(call);
  arena_.memory().add_sum(rows.last(n), loss_sum_);
}

void LayerRunner::run_node(Pass& pass, std::size_t index) {
  const Node& node = pass.list().nodes[index];
  if (belongs_to_cross_entropy(node)) return;
  const OpCall call = call_of(pass, index);
  if (const auto* exchange = std::get_if<Collective>(&node.op)) {
    collective(exchange->forward, vector_of(pass.info(node.inputs.front()), call.inputs[0]),
               vector_of(pass.info(node.output), call.output));
  } else if (std::holds_alternative<CrossEntropy>(node.op)) {
    cross_entropy(call);
  } else {
    device_.forward(call);
  }
}

void LayerRunner::make_output(Pass& pass, const Node& node) {
  if (in_place(node)) return;
  Block& output = pass.tensor(node.output);
  if (output) pass.replaced.push_back(std::move(output));
  output = take(pass.info(node.output));
}

// A product, fused with the GELU after it when the device supports that.
void LayerRunner::make_result(Pass& pass, std::size_t index, bool fused) {
  const Node& node = pass.list().nodes[index];
  make_output(pass, node);
  make_statistics(pass, node);
  if (!fused) return run_node(pass, index);
  make_output(pass, pass.list().nodes[index + 1]);
  device_.forward_fused(call_of(pass, index), call_of(pass, index + 1));
}

// Frees each tensor after its last reader, except those in `kept`.
void LayerRunner::run_nodes(Pass& pass, const std::vector<bool>& chosen,
                            const std::vector<bool>& kept, const std::vector<int>& last_reader) {
  const auto stays = [&](TensorId id) { return kept[static_cast<std::size_t>(id)]; };
  const auto fused = [&](std::size_t i) {
    return device_.fuses_activations() && pass.run.program.before_gelu[i] && chosen[i] &&
           chosen[i + 1];
  };
  for (std::size_t i = 0; i < pass.list().nodes.size(); ++i) {
    if (!chosen[i]) continue;
    const Node& node = pass.list().nodes[i];
    if (i == 0 || !fused(i - 1)) make_result(pass, i, fused(i));
    for (const TensorId id : node.saved)
      if (pass.info(id).role != TensorRole::activation && !stays(id)) pass.tensor(id) = Block();
    for (const TensorId id : node.inputs) {
      const bool last = last_reader[static_cast<std::size_t>(id)] == static_cast<int>(i);
      if (last && !stays(id)) pass.tensor(id) = Block();
    }
  }
}

Block LayerRunner::forward(const LayerRun& run, Block input) {
  Pass pass{run, {}, {}};
  const LayerProgram& program = run.program;
  run.held.resize(program.list.tensors.size());
  if (program.list.input >= 0) pass.tensor(program.list.input) = std::move(input);
  run_nodes(pass, std::vector<bool>(program.list.nodes.size(), true), program.kept,
            program.last_reader);
  const auto out = static_cast<std::size_t>(program.list.output);
  return program.kept[out] ? Block() : std::move(run.held[out]);
}

// Recomputes; afterwards exactly the held tensors exist.
void LayerRunner::recompute(Pass& pass) {
  const LayerProgram& program = pass.run.program;
  if (program.recomputed == Recomputed::nothing) return;
  run_nodes(pass, program.again, program.held, program.last_reader_again);
  pass.replaced.clear();
  for (std::size_t t = 0; t < program.held.size(); ++t)
    if (!program.held[t]) pass.run.held[t] = Block();
}

void LayerRunner::input_gradient(Pass& pass, std::size_t index,
                                 const std::vector<bool>& accumulate) {
  const Node& node = pass.list().nodes[index];
  const auto fused = [&](std::size_t product) {
    return device_.fuses_activations() && pass.run.program.behind_gelu[product];
  };
  OpCall call = call_of(pass, index);
  std::ranges::copy(accumulate, call.accumulate.begin());
  if (const auto* exchange = std::get_if<Collective>(&node.op)) {
    if (belongs_to_cross_entropy(node)) return;
    SHARDPLAN_CHECK(in_place(node) || !accumulate.front());
    collective(exchange->backward, vector_of(pass.info(node.output), call.output_gradient),
               vector_of(pass.info(node.inputs.front()), call.input_gradients[0]));
  } else if (fused(index)) {
    device_.input_gradient_fused(call, call_of(pass, index - 1));
  } else if (index + 1 < pass.list().nodes.size() && fused(index + 1)) {
    // It is already there, in the place of the gradient of the GELU's result.
    std::swap(pass.gradient(node.inputs.front()), pass.gradient(node.output));
  } else {
    device_.input_gradient(call);
  }
}

void LayerRunner::weight_gradient(Pass& pass, std::size_t index) {
  const Node& node = pass.list().nodes[index];
  const auto* linear = std::get_if<Linear>(&node.op);
  if (linear == nullptr) return;
  OpCall call = call_of(pass, index);
  Block whole;
  call.inputs[0] = call.saved[0];
  if (linear->regather) {  // the saved input is sharded along the sequence
    whole = take(pass.info(node.inputs.front()));
    collective(CollectiveKind::all_gather, vector_of(pass.info(node.saved.front()), call.saved[0]),
               vector_of(pass.info(node.inputs.front()), view(whole)));
    call.inputs[0] = view(whole);
  }
  device_.weight_gradient(call);
}

void LayerRunner::differentiate(Pass& pass, std::size_t index) {
  const Node& node = pass.list().nodes[index];
  std::vector<bool> accumulate;
  for (const TensorId id : node.inputs) {
    accumulate.push_back(static_cast<bool>(pass.gradient(id)));
    if (accumulate.back() || pass.info(id).role != TensorRole::activation) continue;
    pass.gradient(id) = take(pass.info(id));
  }
  input_gradient(pass, index, accumulate);
  const LayerProgram& program = pass.run.program;
  if (pass.pending == nullptr) {
    weight_gradient(pass, index);
  } else if (std::holds_alternative<Linear>(node.op)) {
    (*pass.pending)[static_cast<std::size_t>(node.output)] = std::move(pass.gradient(node.output));
  }
  if (!in_place(node)) pass.gradient(node.output) = Block();
  for (std::size_t t = 0; t < program.first_saver.size(); ++t) {
    const bool later = pass.pending != nullptr && program.product_input[t];
    if (program.first_saver[t] == static_cast<int>(index) && !later) pass.run.held[t] = Block();
  }
}

Block LayerRunner::backward(const LayerRun& run, Block gradient) {
  Pass pass{run, HeldTensors(run.program.list.tensors.size()), {}};
  return differentiate_all(pass, std::move(gradient));
}

Block LayerRunner::input_gradients(const LayerRun& run, Block gradient, HeldTensors& pending) {
  pending.resize(run.program.list.tensors.size());
  Pass pass{run, HeldTensors(run.program.list.tensors.size()), {}, &pending};
  return differentiate_all(pass, std::move(gradient));
}

void LayerRunner::weight_gradients(const LayerRun& run, HeldTensors pending) {
  Pass pass{run, std::move(pending), {}};
  for (std::size_t i = run.program.list.nodes.size(); i-- > 0;) weight_gradient(pass, i);
}

Block LayerRunner::differentiate_all(Pass& pass, Block gradient) {
  const LayerProgram& program = pass.run.program;
  // For the head's losses the gradient is a constant, place.loss_scale.
  if (!gradient) gradient = take(pass.info(program.list.output));
  pass.gradient(program.list.output) = std::move(gradient);
  // No gradients are computed during recomputation.
  HeldTensors aside = std::exchange(pass.gradients, {});
  recompute(pass);
  pass.gradients = std::move(aside);
  for (std::size_t i = program.list.nodes.size(); i-- > 0;) differentiate(pass, i);
  return program.list.input < 0 ? Block() : std::move(pass.gradient(program.list.input));
}

}  // namespace runtime
