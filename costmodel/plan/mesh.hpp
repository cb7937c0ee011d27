// The grid of ranks: rank <-> coordinates, the group along an axis, and the network tiers that the
// group crosses.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "costmodel/machine/cluster_spec.hpp"
#include "costmodel/plan/axis.hpp"
#include "costmodel/plan/parallel_plan.hpp"

namespace costmodel {

struct Coordinates {
  int tp = 0;
  int dp = 0;
  int pp = 0;
  int cp = 0;
  int ep = 0;
  bool operator==(const Coordinates&) const = default;
};

// How a group of equally spaced ranks maps onto the tiers: at tier i it joins `fan[i]` units of
// tier i-1 (1 when the group does not cross tier i). The product of all fans is the group's size,
// or slightly more when complete units do not divide the group.
struct GroupLayout {
  int size = 1;
  std::int64_t stride = 1;  // ranks between neighbours
  std::size_t tiers = 0;
  std::array<int, most_tiers> fan{};
  // Index of the outermost tier the group crosses; -1 for a group of one.
  int outermost() const {
    for (std::size_t i = tiers; i-- > 0;) {
      if (fan[i] > 1) return static_cast<int>(i);
    }
    return -1;
  }
};

struct AxisSizes {
  int tp = 1;
  int dp = 1;
  int pp = 1;
  int cp = 1;
  int ep = 1;
};

// Megatron's rank order (parallel_state.py, RankGenerator): the first name varies fastest. The
// names are tp, cp, ep, dp, pp.
class Mesh {
 public:
  // `order` must be a permutation of the five axis names (see valid_order).
  Mesh(const AxisSizes& sizes, std::string_view order);
  Mesh(int tp, int dp, int pp, std::string_view order) : Mesh({tp, dp, pp}, order) {}
  explicit Mesh(const ParallelPlan& plan)
      : Mesh({plan.tp, plan.dp, plan.pp, plan.cp}, plan.rank_order) {
    goes(plan.ways());
  }
  // Of a pipeline that goes two ways each stage's weights are on two of its ranks.
  void goes(int ways) { ways_ = ways; }

  std::int64_t size() const {
    std::int64_t product = 1;
    for (const int n : sizes_) product *= n;
    return product;
  }
  int size(Axis axis) const { return sizes_[static_cast<std::size_t>(axis)]; }
  std::int64_t stride(Axis axis) const { return strides_[static_cast<std::size_t>(axis)]; }
  std::int64_t rank(Coordinates at) const;
  Coordinates coordinates(std::int64_t rank) const;
  // The ranks of the group along `axis` that contains `rank`, ordered along the axis.
  std::vector<std::int64_t> group(Axis axis, std::int64_t rank) const;
  GroupLayout layout(Axis axis, const ClusterSpec& cluster) const;
  // Layout of the ranks that hold the same weights: dp x cp, Megatron's data-parallel group with
  // context parallelism, on both ranks of a stage where the pipeline goes two ways. Gradient
  // reduction and ZeRO sharding use this group.
  GroupLayout replica_layout(const ClusterSpec& cluster) const;

  // Of these ranks the neighbours that ZeRO shards over, where `replicate` groups each hold all
  // shards; and one of each group, which hold the same shard.
  GroupLayout shard_layout(int replicate, const ClusterSpec& cluster) const;
  GroupLayout between_shards(int replicate, const ClusterSpec& cluster) const;

  static bool valid_order(std::string_view order);

 private:
  std::array<int, 5> sizes_{};
  std::array<std::int64_t, 5> strides_{};
  int ways_ = 1;
};

// Megatron's second grid over the same ranks: within a pipeline rank etp x ep x expert-data, in the
// order of the names (parallel_state.py, expert_decoder_rank_generator). Its tensor axis is etp;
// its data axis is the ranks that hold the same experts.
Mesh expert_mesh(const ParallelPlan& plan);

// Layout of the group of any axis, on the grid that has this axis.
GroupLayout layout_of(Axis axis, const ParallelPlan& plan, const ClusterSpec& cluster);

// Layout of `size` ranks with spacing `stride`, for the worst-placed group: when groups and units
// do not divide each other, some groups straddle units.
GroupLayout layout_of(int size, std::int64_t stride, const ClusterSpec& cluster);

// How many ranks of a group, neighbours, are on a node, or on several that links as fast join: in
// the tiers with at least half the bandwidth of the innermost one.
int ranks_nearby(const GroupLayout& group, const ClusterSpec& cluster);

// The tier that a transfer between neighbours crosses, on an axis of `size` ranks with spacing
// `stride`, for the pair that crosses the outermost tier.
std::size_t tier_between(int size, std::int64_t stride, const ClusterSpec& cluster);

}  // namespace costmodel
