#include "runtime/serving/forward_pass.hpp"

#include <algorithm>
#include <utility>

#include "costmodel/base/error.hpp"
#include "runtime/devices/yardstick.hpp"

namespace runtime {

using namespace costmodel;

namespace {

Tensor view(const Block& block) { return {block.data(), block.bytes()}; }

Vector floats(const Tensor& tensor) {
  return {tensor.data, tensor.bytes / sizeof(float), Number::f32};
}

template <std::size_t Most>
void fill(std::array<Tensor, Most>& tensors, const std::vector<TensorId>& ids,
          const std::vector<Block>& from) {
  SHARDPLAN_CHECK(ids.size() <= Most);
  for (std::size_t i = 0; i < ids.size(); ++i)
    tensors[i] = view(from[static_cast<std::size_t>(ids[i])]);
}

Vector part_of(const LayerWeights& weights, int parameter) {
  if (parameter < 0) return {};
  const Parameter& p = weights.layout.tensors[static_cast<std::size_t>(parameter)];
  return weights.values.floats().subspan(p.offset, p.size());
}

// The parameters that a node applies: a residual adds the bias of the product before it.
NodeParameters applied(const LayerPass& pass, std::size_t index) {
  NodeParameters used = pass.weights.layout.nodes[index];
  const int of_product = pass.program.bias_of[index];
  if (of_product == -2) used.bias = -1;
  if (of_product >= 0)
    used.bias = pass.weights.layout.nodes[static_cast<std::size_t>(of_product)].bias;
  return used;
}

}  // namespace

ForwardPass::ForwardPass(Device& device, Communicator& tensor_group, int tag, Arena& arena)
    : device_(device), tensor_(tensor_group), tag_(tag), arena_(arena) {}

Block ForwardPass::take(const TensorInfo& info) {
  return arena_.take(MemoryKind::activations, static_cast<std::size_t>(info.bytes().value));
}

OpCall ForwardPass::call_of(const LayerPass& pass, std::size_t index, const Tensors& tensors) {
  const Node& node = pass.program.list.nodes[index];
  OpCall call{.node = node, .place = pass.place};
  fill(call.inputs, node.inputs, tensors);
  fill(call.saved, node.saved, tensors);
  call.output = view(tensors[static_cast<std::size_t>(node.output)]);
  call.table_layout = node.site == Site::logits;
  const NodeParameters used = applied(pass, index);
  const bool tied = call.table_layout && pass.table != nullptr;
  call.matrix = tied ? part_of(*pass.table, 0) : part_of(pass.weights, used.matrix);
  call.bias = part_of(pass.weights, used.bias);
  return call;
}

void ForwardPass::collective(CollectiveKind kind, const Tensor& in, const Tensor& out) {
  if (in.data != out.data) arena_.memory().copy(floats(in), floats(out));
  if (kind == CollectiveKind::none) return;
  SHARDPLAN_CHECK(kind == CollectiveKind::all_reduce);
  tensor_.all_reduce(floats(out), Reduction::sum, tag_);
}

void ForwardPass::compute(const LayerPass& pass, const OpCall& call) {
  if (pass.cache != nullptr && std::holds_alternative<FlashAttention>(call.node.op))
    return device_.cached_attention(call, *pass.cache);
  device_.forward(call);
}

void ForwardPass::run_node(const LayerPass& pass, std::size_t index, Tensors& tensors) {
  const Node& node = pass.program.list.nodes[index];
  const auto& infos = pass.program.list.tensors;
  const auto make = [&](TensorId id) {
    Block& block = tensors[static_cast<std::size_t>(id)];
    if (!block) block = take(infos[static_cast<std::size_t>(id)]);
    return view(block);
  };
  if (!in_place(node)) make(node.output);
  for (const TensorId id : node.saved)  // statistics that training keeps
    if (infos[static_cast<std::size_t>(id)].role != TensorRole::activation) make(id);
  if (std::holds_alternative<Embedding>(node.op))
    std::ranges::copy(pass.ids, make(node.inputs.front()).ids().begin());
  const OpCall call = call_of(pass, index, tensors);
  if (const auto* exchange = std::get_if<Collective>(&node.op)) {
    const Seconds begin = clocked_ ? thread_time() : Seconds();
    collective(exchange->forward, call.inputs[0], call.output);
    if (clocked_) operators_ -= thread_time() - begin;
  } else {
    compute(pass, call);
  }
}

Block ForwardPass::run(const LayerPass& pass, Block input) {
  const OpList& list = pass.program.list;
  const Seconds begin = clocked_ ? thread_time() : Seconds();
  Tensors tensors(list.tensors.size());
  if (list.input >= 0) tensors[static_cast<std::size_t>(list.input)] = std::move(input);
  for (std::size_t i = 0; i < list.nodes.size(); ++i) {
    run_node(pass, i, tensors);
    const Node& node = list.nodes[i];
    for (const TensorId id : node.saved) {
      const auto at = static_cast<std::size_t>(id);
      if (list.tensors[at].role != TensorRole::activation) tensors[at] = Block();
    }
    for (const TensorId id : node.inputs) {
      const auto at = static_cast<std::size_t>(id);
      const bool last = pass.program.last_reader[at] == static_cast<int>(i);
      if (last && id != list.output) tensors[at] = Block();
    }
  }
  if (clocked_) operators_ += thread_time() - begin;
  return std::move(tensors[static_cast<std::size_t>(list.output)]);
}

}  // namespace runtime
