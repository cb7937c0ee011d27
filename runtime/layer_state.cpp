#include "runtime/layer_state.hpp"

#include <utility>

#include "costmodel/error.hpp"

namespace runtime {

LayerState::LayerState(LayerParameters layout, int zero, Communicator& replicas, int tag,
                       Arena& arena, std::uint64_t seed)
    : layout_(std::move(layout)),
      zero_(zero),
      replicas_(replicas),
      tag_(tag),
      arena_(arena),
      chunk_(chunk_of(layout_.size, replicas.group().size(), replicas.group().position)) {
  const std::size_t whole = layout_.size * sizeof(float), part = chunk_.size * sizeof(float);
  const auto bytes = [&](int stage) { return zero_ >= stage ? part : whole; };
  Block all = arena_.take(zero_ >= 3 ? MemoryKind::buffers : MemoryKind::weights, whole);
  arena_.memory().write(all.data(), all.bytes(), [&](std::span<std::byte> values) {
    initialise(layout_, seed, {reinterpret_cast<float*>(values.data()), layout_.size});
  });
  if (zero_ >= 3) {
    weights_ = arena_.take(MemoryKind::weights, part);
    const auto share = all.floats().subspan(chunk_.begin, chunk_.size);
    arena_.memory().copy(share, weights_.floats());
  } else {
    weights_ = std::move(all);
  }
  gradients_ = arena_.take(MemoryKind::gradients, bytes(2));
  mean_ = arena_.take(MemoryKind::optimizer, bytes(1));
  square_ = arena_.take(MemoryKind::optimizer, bytes(1));
  mean_.clear();
  square_.clear();
}

std::span<float> LayerState::own(const Block& block, bool shared) const {
  return shared ? block.floats() : block.floats().subspan(chunk_.begin, chunk_.size);
}

std::span<const float> LayerState::weights() const {
  if (zero_ < 3) return weights_.floats();
  SHARDPLAN_CHECK(gathered_);
  return gathered_.floats();
}

std::span<float> LayerState::gradients() {
  if (zero_ < 2) return gradients_.floats();
  if (!collected_) {
    collected_ = arena_.take(MemoryKind::buffers, layout_.size * sizeof(float));
    collected_.clear();
  }
  return collected_.floats();
}

void LayerState::gather() {
  if (zero_ < 3 || gathered_) return;
  gathered_ = arena_.take(MemoryKind::buffers, layout_.size * sizeof(float));
  const auto share = own(gathered_, false);
  arena_.memory().copy(weights_.floats(), share);
  replicas_.all_gather(gathered_.floats(), tag_);
}

void LayerState::release() { gathered_ = Block(); }

void LayerState::begin_iteration() { gradients_.clear(); }

void LayerState::end_micro_batch() {
  if (zero_ < 2 || !collected_) return;
  replicas_.reduce_scatter(collected_.floats(), Reduction::sum, tag_);
  arena_.memory().reduce(Reduction::sum, own(collected_, false), gradients_.floats());
  collected_ = Block();
}

void LayerState::reduce() {
  if (zero_ == 0) replicas_.all_reduce(gradients_.floats(), Reduction::sum, tag_);
  if (zero_ == 1) replicas_.reduce_scatter(gradients_.floats(), Reduction::sum, tag_);
}

void LayerState::step(const cpu::AdamW& how, std::int64_t number) {
  if (zero_ == 0) {
    arena_.memory().adamw(weights_.floats(), gradients_.floats(), mean_.floats(), square_.floats(),
                          how, number);
    return;
  }
  arena_.memory().adamw(own(weights_, zero_ >= 3), own(gradients_, zero_ >= 2), mean_.floats(),
                        square_.floats(), how, number);
  if (zero_ < 3) replicas_.all_gather(weights_.floats(), tag_);
}

}  // namespace runtime
