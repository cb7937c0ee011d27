#include "runtime/training/layer_state.hpp"

#include <utility>

#include "costmodel/base/error.hpp"
#include "runtime/ranks/launch.hpp"

namespace runtime {

LayerState::LayerState(LayerParameters layout, Number number, int zero, Communicator& replicas,
                       int tag, Arena& arena, std::uint64_t seed)
    : layout_(std::move(layout)),
      number_(number),
      zero_(zero),
      replicas_(replicas),
      tag_(tag),
      arena_(arena),
      chunk_(chunk_of(layout_.size, replicas.group().size(), replicas.group().position)) {
  const auto bytes = [&](int stage) {
    return (zero_ >= stage ? chunk_.size : layout_.size) * sizeof(float);
  };
  make_weights(seed);
  gradients_ = arena_.take(MemoryKind::gradients, bytes(2));
  mean_ = arena_.take(MemoryKind::optimizer, bytes(1));
  square_ = arena_.take(MemoryKind::optimizer, bytes(1));
  mean_.clear();
  square_.clear();
}

void LayerState::make_weights(std::uint64_t seed) {
  const MemoryKind kind = zero_ >= 3 ? MemoryKind::buffers : MemoryKind::weights;
  Block all;
  if (number_ == Number::f32) {
    all = drawn(kind, seed);
  } else {
    all = arena_.take(kind, layout_.size * bytes_of(number_));
    Block first = drawn(zero_ == 0 ? MemoryKind::optimizer : MemoryKind::buffers, seed);
    arena_.memory().round(first.floats(), weights_in(all));
    master_ = kept(std::move(first), MemoryKind::optimizer, Number::f32, zero_ == 0);
  }
  weights_ = kept(std::move(all), MemoryKind::weights, number_, zero_ < 3);
}

Block LayerState::drawn(MemoryKind kind, std::uint64_t seed) {
  Block block = arena_.take(kind, layout_.size * sizeof(float));
  const int threads = cores_per_rank(replicas_.world());  // all ranks draw at the same time
  arena_.memory().write(block.data(), block.bytes(), [&](std::span<std::byte> values) {
    const std::span floats(reinterpret_cast<float*>(values.data()), layout_.size);
    initialise(layout_, seed, floats, threads);
  });
  return block;
}

Block LayerState::kept(Block all, MemoryKind kind, Number number, bool shared) {
  if (shared) return all;
  Block shard = arena_.take(kind, chunk_.size * bytes_of(number));
  arena_.memory().copy(own({all.data(), layout_.size, number}, false),
                       {shard.data(), chunk_.size, number});
  return shard;
}

Vector LayerState::own(const Vector& vector, bool shared) const {
  return shared ? vector : vector.subspan(chunk_.begin, chunk_.size);
}

Vector LayerState::weights() const {
  if (zero_ < 3) return weights_in(weights_);
  SHARDPLAN_CHECK(gathered_);
  return weights_in(gathered_);
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
  gathered_ = arena_.take(MemoryKind::buffers, layout_.size * bytes_of(number_));
  arena_.memory().copy(weights_in(weights_), own(weights_in(gathered_), false));
  replicas_.all_gather(weights_in(gathered_), tag_);
}

void LayerState::release() { gathered_ = Block(); }

void LayerState::begin_iteration() { gradients_.clear(); }

void LayerState::end_micro_batch() {
  if (zero_ < 2 || !collected_) return;
  replicas_.reduce_scatter(collected_.floats(), Reduction::sum, tag_);
  arena_.memory().reduce(Reduction::sum, own(collected_.floats(), false), gradients_.floats());
  collected_ = Block();
}

void LayerState::reduce() {
  if (zero_ == 0) replicas_.all_reduce(gradients_.floats(), Reduction::sum, tag_);
  if (zero_ == 1) replicas_.reduce_scatter(gradients_.floats(), Reduction::sum, tag_);
}

void LayerState::reduce_to_share() {
  if (zero_ >= 2) return;
  const auto whole = zero_ == 0 ? costmodel::CollectiveKind::all_reduce
                                : costmodel::CollectiveKind::reduce_scatter;
  replicas_.reduce_scatter(gradients_.floats(), Reduction::sum, tag_, whole);
}

std::span<float> LayerState::gradient_share() {
  return own(gradients_.floats(), zero_ >= 2).floats();
}

void LayerState::spread_share() {
  if (zero_ == 0)
    replicas_.all_gather(gradients_.floats(), tag_, costmodel::CollectiveKind::all_reduce);
}

AdamTensor LayerState::updated() {
  const Vector updated = own(weights_in(weights_), zero_ == 0 || zero_ >= 3);
  return {.params = master_ ? master_.floats() : updated.floats(),
          .grads = own(gradients_.floats(), zero_ == 0 || zero_ >= 2).floats(),
          .mean = mean_.floats(),
          .square = square_.floats(),
          .rounded = master_ ? updated : Vector()};
}

void LayerState::end_update() {
  if (zero_ == 1 || zero_ == 2) replicas_.all_gather(weights_in(weights_), tag_);
}

}  // namespace runtime
