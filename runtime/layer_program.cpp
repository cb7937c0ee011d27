#include "runtime/layer_program.hpp"

#include <algorithm>
#include <utility>

#include "costmodel/error.hpp"

namespace runtime {

using costmodel::Node;
using costmodel::OpList;
using costmodel::Recomputed;
using costmodel::TensorId;

bool in_place(const Node& node) {
  return std::find(node.inputs.begin(), node.inputs.end(), node.output) != node.inputs.end();
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
  for (const auto& step : costmodel::recompute_steps(list, what))
    again[static_cast<std::size_t>(step.node - list.nodes.data())] = true;
  return again;
}

// The product whose result a residual adds: behind it there may be collectives.
int product_before(const OpList& list, TensorId result) {
  for (std::size_t i = list.nodes.size(); i-- > 0;) {
    const Node& node = list.nodes[i];
    if (node.output != result) continue;
    if (std::holds_alternative<costmodel::Linear>(node.op)) return static_cast<int>(i);
    SHARDPLAN_CHECK(std::holds_alternative<costmodel::Collective>(node.op));
    result = node.inputs.front();
  }
  SHARDPLAN_CHECK(false);
  return -1;
}

void find_biases(LayerProgram& program) {
  const OpList& list = program.list;
  program.bias_of.assign(list.nodes.size(), -1);
  for (std::size_t i = 0; i < list.nodes.size(); ++i) {
    const auto* residual = std::get_if<costmodel::BiasDropoutAdd>(&list.nodes[i].op);
    if (residual == nullptr || !residual->bias) continue;
    const int product = product_before(list, list.nodes[i].inputs.front());
    program.bias_of[i] = product;
    program.bias_of[static_cast<std::size_t>(product)] = -2;
  }
}

}  // namespace

LayerProgram layer_program(OpList list, Recomputed recomputed) {
  LayerProgram program;
  program.list = std::move(list);
  program.recomputed = recomputed;
  const OpList& own = program.list;
  program.again = nodes_again(own, recomputed);
  program.kept = flags_of(own, costmodel::kept_tensors(own, recomputed));
  program.held = flags_of(own, costmodel::kept_tensors(own, Recomputed::nothing));
  for (std::size_t t = 0; t < program.held.size(); ++t)
    program.held[t] = program.held[t] || program.kept[t];
  program.last_reader = last_readers(own, std::vector<bool>(own.nodes.size(), true));
  program.last_reader_again = last_readers(own, program.again);
  program.first_saver.assign(own.tensors.size(), -1);
  for (std::size_t i = own.nodes.size(); i-- > 0;) {
    for (const TensorId id : own.nodes[i].saved)
      program.first_saver[static_cast<std::size_t>(id)] = static_cast<int>(i);
  }
  find_biases(program);
  return program;
}

}  // namespace runtime
