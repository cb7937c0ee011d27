#include "calibrate/measure/node_bench.hpp"

#include <map>
#include <random>

namespace calibrate {

using namespace costmodel;
using runtime::Number;
using runtime::Place;
using runtime::Tensor;
using runtime::Vector;

namespace {

bool holds_ids(const Node& node) {
  return std::holds_alternative<Embedding>(node.op) ||
         std::holds_alternative<CrossEntropy>(node.op);
}

}  // namespace

// Device memory with data, owned by this.
class NodeBench::Room {
 public:
  Room(runtime::Memory& memory, RandomBlock& block, Number narrow)
      : memory_(memory), block_(block), narrow_(narrow) {}
  ~Room() {
    for (void* data : blocks_) memory_.release(data);
  }
  Room(const Room&) = delete;
  Room& operator=(const Room&) = delete;

  Vector numbers(std::size_t count, Number number) {
    if (count == 0) return {nullptr, 0, number};
    const Vector vector{take(count * runtime::bytes_of(number)), count, number};
    block_.fill(vector);
    return vector;
  }
  Tensor ids(std::size_t count, std::int64_t below) {
    const std::size_t bytes = count * sizeof(std::int64_t);
    const Tensor tensor{take(bytes), bytes};
    memory_.write(tensor.data, bytes, [&](std::span<std::byte> to) {
      std::minstd_rand generator(1);
      for (auto& id : Tensor{to.data(), bytes}.ids())
        id = static_cast<std::int64_t>(generator()) % below;
    });
    return tensor;
  }
  Tensor of(const TensorInfo& info) {
    const auto elements = static_cast<std::size_t>(info.rows * info.cols);
    if (info.role == TensorRole::mask) return zeros(elements);
    const Vector vector = numbers(elements, number_of(info));
    return {vector.data, vector.bytes()};
  }
  // A tensor that of() made.
  Vector vector_of(const TensorInfo& info, const Tensor& tensor) const {
    const Number number = number_of(info);
    return {tensor.data, tensor.bytes / runtime::bytes_of(number), number};
  }

 private:
  Number number_of(const TensorInfo& info) const {
    return info.element_bytes == 2 ? narrow_ : Number::f32;
  }
  Tensor zeros(std::size_t bytes) {
    const Tensor tensor{take(bytes), bytes};
    memory_.clear(tensor.data, bytes);
    return tensor;
  }
  void* take(std::size_t bytes) {
    blocks_.push_back(memory_.allocate(bytes));
    return blocks_.back();
  }
  runtime::Memory& memory_;
  RandomBlock& block_;
  const Number narrow_;
  std::vector<void*> blocks_;
};

NodeBench::~NodeBench() = default;

NodeBench::NodeBench(runtime::Device& device, RandomBlock& block, Number number, const OpList& list,
                     std::size_t node, const NodeWeights& weights, const Place& place)
    : node_(list.nodes[node]),
      place_(place),
      device_(device),
      block_(block),
      room_(std::make_unique<Room>(device.memory(), block, number)),
      call_{.node = node_, .place = place_} {
  std::map<TensorId, Tensor> tensors;  // a tensor that is both kept and read exists once
  const auto info = [&](TensorId id) { return list.tensors[static_cast<std::size_t>(id)]; };
  const auto tensor = [&](TensorId id) {
    const auto [found, fresh] = tensors.try_emplace(id);
    if (!fresh) return found->second;
    const TensorInfo& what = info(id);
    const bool of_ids = holds_ids(node_) && what.role == TensorRole::statistics &&
                        what.element_bytes == sizeof(std::int64_t);
    found->second = of_ids
                        ? room_->ids(static_cast<std::size_t>(what.rows * what.cols), place_.vocab)
                        : room_->of(what);
    return found->second;
  };
  for (std::size_t i = 0; i < node_.inputs.size(); ++i) {
    const TensorId id = node_.inputs[i];
    call_.inputs[i] = tensor(id);
    if (info(id).role != TensorRole::activation) continue;
    call_.input_gradients[i] = room_->of(info(id));
    if (node == 0 || id == list.nodes[node - 1].output)
      fresh_inputs_.push_back(room_->vector_of(info(id), call_.inputs[i]));
  }
  for (std::size_t i = 0; i < node_.saved.size(); ++i) call_.saved[i] = tensor(node_.saved[i]);
  call_.output = tensor(node_.output);
  call_.output_gradient = room_->of(info(node_.output));
  output_gradient_ = room_->vector_of(info(node_.output), call_.output_gradient);
  const auto matrix = static_cast<std::size_t>(weights.matrix);
  const auto bias = static_cast<std::size_t>(weights.bias);
  call_.matrix = room_->numbers(matrix, number);
  call_.bias = room_->numbers(bias, number);
  call_.matrix_gradient = room_->numbers(matrix, Number::f32).floats();
  call_.bias_gradient = room_->numbers(bias, Number::f32).floats();
  call_.table_layout = weights.table;
}

void NodeBench::write_predecessor(Pass pass) {
  if (pass != Pass::forward) return block_.fill(output_gradient_);
  for (const Vector& input : fresh_inputs_) block_.fill(input);
}

void NodeBench::run(Pass pass) {
  if (pass == Pass::weight_gradient) return device_.weight_gradient(call_);
  if (pass == Pass::input_gradient) return device_.input_gradient(call_);
  if (!std::holds_alternative<CrossEntropy>(node_.op)) return device_.forward(call_);
  device_.logits_maximum(call_);
  device_.logits_exponentials(call_);
  device_.logits_loss(call_);
}

OpList product_list(std::int64_t m, std::int64_t n, std::int64_t k, double element) {
  OpList list;
  list.tensors = {{"x", m, k, element}, {"y", m, n, element}};
  list.nodes = {{Site::other, Linear{m, n, k, false, false}, {0}, 1, {0}}};
  return list;
}

OpList attention_list(const FlashAttention& op, double element) {
  const std::int64_t rows = op.sequences * op.s, wide = (op.heads + 2 * op.kv_heads) * op.head_dim;
  OpList list;
  list.tensors = {{"qkv", rows, wide, element},
                  {"out", rows, op.heads * op.head_dim, element},
                  {"log-sum-exp", rows, op.heads, 4, TensorRole::statistics}};
  list.nodes = {{Site::flash_attention, op, {0}, 1, {0, 2, 1}}};
  return list;
}

}  // namespace calibrate
