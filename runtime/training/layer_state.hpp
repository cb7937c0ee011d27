// The weights, gradients and optimizer states of one layer on one rank, sharded over the ranks that
// hold the same as ZeRO does (Rajbhandari et al. 2020, arXiv:1910.02054): stage 1 shards optimizer
// states, 2 gradients too, 3 weights too. A rank's share is its chunk of the layer's flat memory.
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
  // `replicas`: the ranks that hold the same layer. Arena and communicator outlive this. Weights of
  // another format than fp32 have fp32 ones beside them, which are the optimizer's. Gradients are
  // fp32.
  LayerState(LayerParameters layout, Number number, int zero, Communicator& replicas, int tag,
             Arena& arena, std::uint64_t seed);

  const LayerParameters& layout() const { return layout_; }
  // The whole layer; with ZeRO-3 between gather() and release().
  Vector weights() const;
  // The whole layer's, to be added to; made (zeros) when there is none.
  std::span<float> gradients();

  void gather();   // ZeRO-3: the other ranks' shares
  void release();  // ZeRO-3: forgets them
  void begin_iteration();
  // The micro-batch's gradients of this layer are complete: ZeRO-2 and -3 sum them over the
  // replicas and keep the rank's share.
  void end_micro_batch();
  // All micro-batches' are: sums them over the replicas, where that has not been done.
  void reduce();
  // The same in two halves, between which a rank's share is its own to add to.
  void reduce_to_share();
  std::span<float> gradient_share();
  void spread_share();
  // The rank's share, which the optimizer updates.
  AdamTensor updated();
  // It has: gathers the weights (ZeRO-1 and -2).
  void end_update();

 private:
  void make_weights(std::uint64_t seed);
  Vector weights_in(const Block& block) const {
    return {block.data(), block.bytes() / bytes_of(number_), number_};
  }
  // The rank's share of something held whole, or all of what is held as a share.
  Vector own(const Vector& vector, bool shared) const;

  LayerParameters layout_;
  Number number_;
  int zero_;
  Communicator& replicas_;
  int tag_;
  Arena& arena_;
  Chunk chunk_;
  Block weights_, gradients_, mean_, square_;
  Block master_;                // fp32 weights, where the others are not: the share that is updated
  Block gathered_, collected_;  // whole layer, for a while
};

}  // namespace runtime
