#include "runtime/training/layer_state.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "costmodel/base/error.hpp"

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
  Memory& memory = arena_.memory();
  Block all = arena_.take(zero_ >= 3 ? MemoryKind::buffers : MemoryKind::weights,
                          layout_.size * bytes_of(number_));
  const auto floats_in = [](std::span<std::byte> bytes) {
    return std::span(reinterpret_cast<float*>(bytes.data()), bytes.size() / sizeof(float));
  };
  if (number_ == Number::f32) {
    memory.write(all.data(), all.bytes(), [&](std::span<std::byte> values) {
      initialise(layout_, seed, floats_in(values));
    });
  } else {
    std::vector<float> first(layout_.size);
    initialise(layout_, seed, first);
    memory.write(all.data(), all.bytes(), [&](std::span<std::byte> values) {
      host_memory().round(first, {values.data(), layout_.size, number_});
    });
    const auto updated = own(Vector(first), zero_ == 0).floats();
    master_ = arena_.take(MemoryKind::optimizer, updated.size_bytes());
    memory.write(master_.data(), master_.bytes(), [&](std::span<std::byte> values) {
      std::ranges::copy(updated, floats_in(values).begin());
    });
  }
  if (zero_ >= 3) {
    weights_ = arena_.take(MemoryKind::weights, chunk_.size * bytes_of(number_));
    memory.copy(own(weights_in(all), false), weights_in(weights_));
  } else {
    weights_ = std::move(all);
  }
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
