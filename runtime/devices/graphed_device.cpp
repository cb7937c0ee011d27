#include "runtime/devices/graphed_device.hpp"

#include <bit>
#include <exception>
#include <type_traits>
#include <utility>
#include <variant>

namespace runtime {

using namespace costmodel;

namespace {

// A key is a sequence of these words.
void put_in(GraphKey& key, const void* address) {
  key.push_back(reinterpret_cast<std::uintptr_t>(address));
}
void put_in(GraphKey& key, double number) { key.push_back(std::bit_cast<std::uint64_t>(number)); }
template <class Word>
requires std::is_integral_v<Word> || std::is_enum_v<Word>
void put_in(GraphKey& key, Word word) { key.push_back(static_cast<std::uint64_t>(word)); }
void put_in(GraphKey& key, const Tensor& tensor) {
  put_in(key, tensor.data);
  put_in(key, tensor.bytes);
}
void put_in(GraphKey& key, const Vector& vector) {
  put_in(key, vector.data);
  put_in(key, vector.size);
  put_in(key, vector.number);
}
void put_in(GraphKey& key, std::span<float> values) {
  put_in(key, values.data());
  put_in(key, values.size());
}
template <class Value, std::size_t Count>
void put_in(GraphKey& key, const std::array<Value, Count>& all) {
  for (const Value& one : all) put_in(key, one);
}
void put_in(GraphKey& key, const Place& place) {
  const auto& [first_sample, sequences, sequence, first_row, position, heads, kv_heads, first_head,
               all_heads, head_dim, first_token, vocab, seed, layer, dropout, loss_scale] = place;
  for (const std::int64_t value : {first_sample, sequences, sequence, first_row, position, heads,
                                   kv_heads, first_head, all_heads, head_dim, first_token, vocab})
    put_in(key, value);
  for (const std::uint64_t value : {seed, layer}) put_in(key, value);
  for (const double value : {dropout, loss_scale}) put_in(key, value);
}

// No operation of a stretch reads the two numbers that differ every time.
Place constant_part(Place place) {
  place.first_sample = 0;
  place.loss_scale = 0;
  return place;
}

bool draws(const costmodel::Op& op) {
  const auto* const residual = std::get_if<BiasDropoutAdd>(&op);
  return std::holds_alternative<Dropout>(op) || (residual != nullptr && residual->dropout);
}

}  // namespace

struct GraphedDevice::Call {
  Call(Work its_work, const OpCall& c)
      : work(its_work), place(constant_part(c.place)), call(at_place(c, place)) {}
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  Work work;
  Place place;
  OpCall call;
};

struct GraphedDevice::Fused {
  Fused(Work work, const OpCall& its_linear, const OpCall& its_activation)
      : linear(work, its_linear), activation(work, its_activation) {}

  Call linear, activation;
};

struct GraphedDevice::Move {
  const void* from;  // null: clear
  void* to;
  std::size_t bytes;
};

struct GraphedDevice::Step {
  Step(Work work, const OpCall& call) : what(std::in_place_type<Call>, work, call) {}
  Step(Work work, const OpCall& linear, const OpCall& activation)
      : what(std::in_place_type<Fused>, work, linear, activation) {}
  explicit Step(const Move& move) : what(move) {}
  std::variant<Call, Move, Fused> what;
};

GraphedDevice::GraphedDevice(Device& device, GraphRecorder& recorder, std::size_t graphs_of_shape)
    : DeviceAround(device),
      own_memory_(device.memory()),
      memory_(*this, own_memory_),
      cache_(recorder, graphs_of_shape) {
  if (device.streams() != nullptr) streams_.emplace(*this, *device.streams());
}

// Drops what is still queued: a run that ends well has waited for everything.
GraphedDevice::~GraphedDevice() = default;

void GraphedDevice::around(Work work, const OpCall& call) {
  const bool forward = work == Work::forward;
  const bool scaled =
      work == Work::input_gradient && std::holds_alternative<CrossEntropy>(call.node.op);
  if ((forward && draws(call.node.op)) || scaled) {
    settle();
    return through(work, call);
  }
  kept_.emplace_back(work, call);
}

void GraphedDevice::forward_fused(const OpCall& linear, const OpCall& activation) {
  kept_.emplace_back(Work::forward, linear, activation);
}

void GraphedDevice::input_gradient_fused(const OpCall& linear, const OpCall& activation) {
  kept_.emplace_back(Work::input_gradient, linear, activation);
}

void GraphedDevice::keep(const Move& move) { kept_.emplace_back(move); }

// Visits each call of a step, or its move.
template <class VisitCall, class VisitMove>
void GraphedDevice::look_at(const Step& step, VisitCall visit, VisitMove visit_move) {
  if (const Move* const move = std::get_if<Move>(&step.what)) return visit_move(*move);
  if (const Call* const call = std::get_if<Call>(&step.what)) return visit(*call);
  const Fused& fused = std::get<Fused>(step.what);
  visit(fused.linear);
  visit(fused.activation);
}

GraphKey GraphedDevice::shape() const {
  GraphKey key;
  for (const Step& step : kept_) {
    put_in(key, step.what.index());
    look_at(
        step,
        [&](const Call& kept) {
          put_in(key, kept.work);
          put_in(key, &kept.call.node);
          put_in(key, kept.place.layer);
        },
        [](const Move&) {});
  }
  return key;
}

void GraphedDevice::put_values(GraphKey& key, const Call& kept) {
  const auto& [node, place, inputs, output, saved, input_gradients, accumulate, output_gradient,
               matrix, bias, matrix_gradient, bias_gradient, table_layout] = kept.call;
  put_in(key, kept.work);
  put_in(key, &node);
  put_in(key, place);
  put_in(key, inputs);
  put_in(key, output);
  put_in(key, saved);
  put_in(key, input_gradients);
  put_in(key, accumulate);
  put_in(key, output_gradient);
  put_in(key, matrix);
  put_in(key, bias);
  put_in(key, matrix_gradient);
  put_in(key, bias_gradient);
  put_in(key, table_layout);
}

GraphKey GraphedDevice::values() const {
  GraphKey key;
  for (const Step& step : kept_) {
    look_at(
        step, [&](const Call& kept) { put_values(key, kept); },
        [&](const Move& move) {
          put_in(key, move.from);
          put_in(key, move.to);
          put_in(key, move.bytes);
        });
  }
  return key;
}

void GraphedDevice::do_step(const Move& move) {
  if (move.from == nullptr) {
    own_memory_.clear(move.to, move.bytes);
  } else {
    own_memory_.copy(move.from, move.to, move.bytes);
  }
}

void GraphedDevice::do_step(const Fused& fused) {
  const OpCall &linear = fused.linear.call, &activation = fused.activation.call;
  if (fused.linear.work == Work::forward) {
    inner().forward_fused(linear, activation);
  } else {
    inner().input_gradient_fused(linear, activation);
  }
}

void GraphedDevice::do_step(const Call& kept) { through(kept.work, kept.call); }

void GraphedDevice::do_steps() {
  for (const Step& step : kept_) std::visit([this](const auto& what) { do_step(what); }, step.what);
}

void GraphedDevice::settle() {
  if (kept_.empty()) return;
  try {
    cache_.run(shape(), values(), kept_.size(), [this] { do_steps(); });
  } catch (...) {
    kept_.clear();  // never run twice
    throw;
  }
  kept_.clear();
}

// Queued work may still write to the memory that is freed, while a run ends by a fault.
void GraphedDevice::KeptMemory::release(void* data) noexcept {
  try {
    device_.settle();
  } catch (const std::exception&) {  // the next call reports the device's error too
  }
  memory_.release(data);
}

void GraphedDevice::KeptMemory::clear(void* data, std::size_t bytes) {
  if (bytes > 0) device_.keep({nullptr, data, bytes});
}

void GraphedDevice::KeptMemory::copy(const void* from, void* to, std::size_t bytes) {
  if (from != to && bytes > 0) device_.keep({from, to, bytes});
}

void GraphedDevice::KeptMemory::read(const void* from, std::span<std::byte> host) {
  device_.settle();
  memory_.read(from, host);
}

void GraphedDevice::KeptMemory::write(void* to, std::size_t bytes,
                                      const std::function<void(std::span<std::byte>)>& write) {
  device_.settle();
  memory_.write(to, bytes, write);
}

void GraphedDevice::KeptMemory::reduce(Reduction reduction, const Vector& other,
                                       const Vector& values) {
  device_.settle();
  memory_.reduce(reduction, other, values);
}

void GraphedDevice::KeptMemory::round(std::span<const float> from, const Vector& to) {
  device_.settle();
  memory_.round(from, to);
}

void GraphedDevice::KeptMemory::add_sum(std::span<const float> values, double* total) {
  device_.settle();
  memory_.add_sum(values, total);
}

void GraphedDevice::KeptMemory::draw_tokens(const cpu::TokenDraw& draw,
                                            std::span<std::int64_t> ids) {
  device_.settle();
  memory_.draw_tokens(draw, ids);
}

void GraphedDevice::KeptMemory::adamw(std::span<float> params, std::span<const float> grads,
                                      std::span<float> mean, std::span<float> square,
                                      const cpu::AdamW& how, std::int64_t step,
                                      double gradient_scale) {
  device_.settle();
  memory_.adamw(params, grads, mean, square, how, step, gradient_scale);
}

void GraphedDevice::KeptMemory::adamw(std::span<const AdamTensor> tensors, const cpu::AdamW& how,
                                      std::int64_t step, double gradient_scale) {
  device_.settle();
  memory_.adamw(tensors, how, step, gradient_scale);
}

bool GraphedDevice::KeptMemory::finite(std::span<const AdamTensor> tensors) {
  device_.settle();
  return memory_.finite(tensors);
}

void GraphedDevice::KeptMemory::wait() {
  device_.settle();
  memory_.wait();
}

void GraphedDevice::KeptStreams::record(Stream stream, Event event) {
  if (stream == compute) device_.settle();
  streams_.record(stream, event);
}

void GraphedDevice::KeptStreams::wait(Stream stream, Event event) {
  if (stream == compute) device_.settle();
  streams_.wait(stream, event);
}

void GraphedDevice::KeptStreams::copy(Stream stream, const void* from, void* to,
                                      std::size_t bytes) {
  if (stream == compute) device_.settle();
  streams_.copy(stream, from, to, bytes);
}

}  // namespace runtime
