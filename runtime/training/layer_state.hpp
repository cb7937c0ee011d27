// The weights, gradients and optimizer states of one layer on one rank, sharded over the ranks that
// hold the same weights as in ZeRO (Rajbhandari et al. 2020, arXiv:1910.02054): stage 1 shards the
// optimizer states, stage 2 also the gradients, stage 3 also the weights. A rank's shard is its
// chunk of the layer's flat buffer.
#pragma once

#include <cstdint>
#include <span>

#include "runtime/backend/arena.hpp"
#include "runtime/backend/memory.hpp"
#include "runtime/ranks/collectives.hpp"
#include "runtime/training/parameters.hpp"

namespace runtime {

class LayerState {
 public:
  // `replicas`: the ranks that hold the same weights. Arena and communicator outlive this. Weights
  // in 16 bits have fp32 master weights for the optimizer. Gradients are fp32.
  LayerState(LayerParameters layout, Number number, int zero, Communicator& replicas, int tag,
             Arena& arena, std::uint64_t seed);

  const LayerParameters& layout() const { return layout_; }
  // The unsharded weights; with ZeRO-3 only between gather() and release().
  Vector weights() const;
  // The unsharded gradients, to accumulate into; allocated and zeroed when absent.
  std::span<float> gradients();

  void gather();   // ZeRO-3: all-gathers the weights
  void release();  // ZeRO-3: frees the gathered weights
  void begin_iteration();
  // Call when the micro-batch's gradients are complete: ZeRO-2 and -3 reduce-scatter them over the
  // replicas.
  void end_micro_batch();
  // Call when all micro-batches' gradients are complete: reduces them over the replicas unless that
  // is done already.
  void reduce();
  // reduce() in two halves; between them the rank may change its shard, gradient_share().
  void reduce_to_share();
  std::span<float> gradient_share();
  void spread_share();
  // The rank's shard, for the optimizer.
  AdamTensor updated();
  // Call after the optimizer step: all-gathers the weights (ZeRO-1 and -2).
  void end_update();

 private:
  void make_weights(std::uint64_t seed);
  // The unsharded initial weights in fp32, drawn once.
  Block drawn(MemoryKind kind, std::uint64_t seed);
  // `all`, an unsharded buffer, or unless it is shared the rank's shard of it.
  Block kept(Block all, MemoryKind kind, Number number, bool shared);
  Vector weights_in(const Block& block) const {
    return {block.data(), block.bytes() / bytes_of(number_), number_};
  }
  // The rank's shard of an unsharded buffer, or all of a sharded one.
  Vector own(const Vector& vector, bool shared) const;

  LayerParameters layout_;
  Number number_;
  int zero_;
  Communicator& replicas_;
  int tag_;
  Arena& arena_;
  Chunk chunk_;
  Block weights_, gradients_, mean_, square_;
  Block master_;                // fp32 master weights of 16-bit weights: the shard that is updated
  Block gathered_, collected_;  // the unsharded layer, temporarily
};

}  // namespace runtime
