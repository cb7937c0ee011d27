// Sums gradients over groups of ranks that hold replicas and take unequal shares of the batch. Each
// group has its own pipeline and data parallel sizes; the tensor parallel size is the same in all.
//
// Before the call a layer's gradients have been reduce-scattered within each group. The layer is
// cut into as many parts as there are groups; each group sends every part to the group that sums it
// and receives the sums: 2 (G - 1) / G of a rank's shard, as in a ring over the G groups. All
// groups get identical bits. Every sample has the same weight, because the loss is divided by the
// tokens of the global batch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "costmodel/model/model_spec.hpp"
#include "costmodel/operators/transformer.hpp"
#include "costmodel/plan/mesh.hpp"
#include "costmodel/plan/pipeline.hpp"
#include "runtime/backend/shard.hpp"
#include "runtime/ranks/collectives.hpp"
#include "runtime/ranks/staged_transport.hpp"

namespace runtime {

class GroupSum {
 public:
  // `world` contains the ranks of all parts. It outlives this, and so does `memory`.
  GroupSum(std::vector<costmodel::Pipeline> parts, const costmodel::ModelSpec& model,
           Transport& world, Memory& memory);
  ~GroupSum();
  GroupSum(const GroupSum&) = delete;
  GroupSum& operator=(const GroupSum&) = delete;

  // `share`: this rank's shard of a layer of `size` elements: block `number`, or a layer of another
  // kind. Collective over all ranks that hold the layer, layers in the model's order.
  void sum(costmodel::LayerKind kind, std::int64_t number, std::size_t size,
           std::span<float> share);
  const TrafficCount& traffic() const { return traffic_; }
  void restart_count() { traffic_ = {}; }

 private:
  struct Holder {
    int rank = 0;
    Chunk chunk;
  };
  int stage_of(const costmodel::Pipeline& part, costmodel::LayerKind kind,
               std::int64_t number) const;
  std::vector<Holder> holders(std::size_t group, costmodel::LayerKind kind, std::int64_t number,
                              std::size_t size) const;
  void send(int to, std::span<const float> values);
  void recv(int from, std::span<float> values);
  float* room(std::size_t elements);

  std::vector<costmodel::Pipeline> parts_;
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
