// Sums gradients over groups of ranks that hold replicas of unequal shares of the batch, each cut
// over pipeline and data parallel ranks of its own; tensor groups are equally wide in all.
//
// A layer's gradients have then been summed within each group and scattered over its replicas. The
// layer is cut into as many parts as there are groups; each group sends every part to the group
// that sums it, and has the sums back: what a ring over the groups would send, 2 (G - 1) / G of a
// rank's share. All groups get the same bits. A sample weighs the same wherever it was trained,
// since the loss is divided by the tokens of the whole batch: a group's part of the gradient weighs
// as its share of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "costmodel/model/model_spec.hpp"
#include "costmodel/operators/transformer.hpp"
#include "costmodel/plan/mesh.hpp"
#include "costmodel/plan/replica_groups.hpp"
#include "runtime/backend/shard.hpp"
#include "runtime/ranks/collectives.hpp"
#include "runtime/ranks/staged_transport.hpp"

namespace runtime {

class GroupSum {
 public:
  // `world` has the ranks of all parts and outlives this, as `memory` does.
  GroupSum(std::vector<costmodel::ReplicaPart> parts, const costmodel::ModelSpec& model,
           Transport& world, Memory& memory);
  ~GroupSum();
  GroupSum(const GroupSum&) = delete;
  GroupSum& operator=(const GroupSum&) = delete;

  // `share`: this rank's chunk of a layer of `size` elements, the block of that number or another
  // kind. All ranks that hold the layer call it, layers in the order of the model.
  void sum(costmodel::LayerKind kind, std::int64_t number, std::size_t size,
           std::span<float> share);
  const TrafficCount& traffic() const { return traffic_; }
  void restart_count() { traffic_ = {}; }

 private:
  struct Holder {
    int rank = 0;
    Chunk chunk;
  };
  int stage_of(const costmodel::ReplicaPart& part, costmodel::LayerKind kind,
               std::int64_t number) const;
  std::vector<Holder> holders(std::size_t group, costmodel::LayerKind kind, std::int64_t number,
                              std::size_t size) const;
  void send(int to, std::span<const float> values);
  void recv(int from, std::span<float> values);
  float* room(std::size_t elements);

  std::vector<costmodel::ReplicaPart> parts_;
  costmodel::ModelSpec model_;
  Memory& memory_;
  StagedTransport world_;
  std::size_t own_ = 0;  // of parts_
  costmodel::Coordinates at_;
  TrafficCount traffic_;
  void* room_ = nullptr;
  std::size_t room_bytes_ = 0;
};

}  // namespace runtime
