#include "runtime/training/layer_program.hpp"

#include <algorithm>
#include <utility>

#include "costmodel/base/error.hpp"

namespace runtime {

using namespace costmodel;

bool in_place(const Node& node) {
  return std::ranges::find(node.inputs, node.output) != node.inputs.end();
}

namespace {

std::vector<bool> flags_of(const OpList& list, const std::vector<TensorId>& ids) {
  std::vector<bool> flags(list.tensors.size(), false);
  for (const TensorId id : ids) flags[static_cast<std::size_t>(id)] = true;
  return flags;
}

std::vector<int> last_readers(const OpList& list, const std::vector<bool>& chosen) {
  std::vector<int> last(list.tensors.size(), -1);
  for (std::size_t i = 0; i < list.nodes.size(); ++i) {
    if (!chosen[i]) continue;
    for (const TensorId id : list.nodes[i].inputs)
      last[static_cast<std::size_t>(id)] = static_cast<int>(i);
  }
  return last;
}

std::vector<bool> nodes_again(const OpList& list, Recomputed what) {
  std::vector<bool> again(list.nodes.size(), false);
  for (const auto& step : recompute_steps(list, what))
    again[static_cast<std::size_t>(step.node - list.nodes.data())] = true;
  return again;
}

// The product whose result a residual adds; there may be collectives between them.
struct BiasedProduct {
  std::size_t node;
  bool same_gradient;  // no collective between changes it
};

BiasedProduct product_before(const OpList& list, TensorId result) {
  bool same = true;
  for (std::size_t i = list.nodes.size(); i-- > 0;) {
    const Node& node = list.nodes[i];
    if (node.output != result) continue;
    if (std::holds_alternative<Linear>(node.op)) return {i, same};
    const auto* collective = std::get_if<Collective>(&node.op);
    SHARDPLAN_CHECK(collective != nullptr);
    same = same && collective->backward == CollectiveKind::none;
    result = node.inputs.front();
  }
  throw InternalError("a bias of no product");
}

void find_biases(LayerProgram& program) {
  const OpList& list = program.list;
  program.bias_of.assign(list.nodes.size(), -1);
  program.sums_bias.assign(list.nodes.size(), false);
  for (std::size_t i = 0; i < list.nodes.size(); ++i) {
    const auto* residual = std::get_if<BiasDropoutAdd>(&list.nodes[i].op);
    if (residual == nullptr || !residual->bias) continue;
    const auto [product, same_gradient] = product_before(list, list.nodes[i].inputs.front());
    program.bias_of[i] = static_cast<int>(product);
    program.bias_of[product] = -2;
    program.sums_bias[product] = same_gradient;
  }
}

bool makes(const Node& node, TensorId tensor) { return node.output == tensor && !in_place(node); }

void find_gelus(LayerProgram& program) {
  const auto& nodes = program.list.nodes;
  program.before_gelu.assign(nodes.size(), false);
  program.behind_gelu.assign(nodes.size(), false);
  const auto readers = [&](TensorId id) {
    std::ptrdiff_t count = 0;
    for (const Node& node : nodes) count += std::ranges::count(node.inputs, id);
    return count;
  };
  for (std::size_t i = 1; i + 1 < nodes.size(); ++i) {
    const auto* gelu = std::get_if<Activation>(&nodes[i].op);
    if (gelu == nullptr || gelu->gated) continue;
    const TensorId in = nodes[i].inputs.front(), out = nodes[i].output;
    if (readers(in) != 1 || readers(out) != 1) continue;
    const auto is_product = [](const Node& node) {
      return std::holds_alternative<Linear>(node.op);
    };
    program.before_gelu[i - 1] = is_product(nodes[i - 1]) && makes(nodes[i - 1], in);
    program.behind_gelu[i + 1] = is_product(nodes[i + 1]) && nodes[i + 1].inputs.front() == out;
  }
}

}  // namespace

LayerProgram layer_program(OpList list, Recomputed recomputed) {
  LayerProgram program;
  program.list = std::move(list);
  program.recomputed = recomputed;
  const OpList& own = program.list;
  program.again = nodes_again(own, recomputed);
  program.kept = flags_of(own, kept_tensors(own, recomputed));
  program.held = flags_of(own, kept_tensors(own, Recomputed::nothing));
  for (std::size_t t = 0; t < program.held.size(); ++t)
    program.held[t] = program.held[t] || program.kept[t];
  program.last_reader = last_readers(own, std::vector<bool>(own.nodes.size(), true));
  program.last_reader_again = last_readers(own, program.again);
  program.first_saver.assign(own.tensors.size(), -1);
  for (std::size_t i = own.nodes.size(); i-- > 0;) {
    for (const TensorId id : own.nodes[i].saved)
      program.first_saver[static_cast<std::size_t>(id)] = static_cast<int>(i);
  }
  program.product_input.assign(own.tensors.size(), false);
  for (const Node& node : own.nodes) {
    if (std::holds_alternative<Linear>(node.op))
      program.product_input[static_cast<std::size_t>(node.saved.front())] = true;
  }
  find_biases(program);
  find_gelus(program);
  return program;
}

}  // namespace runtime
