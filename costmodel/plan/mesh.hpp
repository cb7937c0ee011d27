// The grid of ranks: rank <-> coordinates, the group along an axis, and the network tiers that
// group crosses.
#pragma once

#include <array>
#include <cstdint>
#include <string>
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

// How a group of equally spaced ranks lies over the tiers: at tier i, `fan[i]` units of tier i-1
// are joined (1 where the group does not cross it). The product of all
// fans is the group's size, or a little more where whole units do not divide the group.
inline constexpr std::size_t most_tiers = 6;
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

// Megatron's rank order (parallel_state.py, RankGenerator): the first name varies fastest. Names:
// tp, cp, ep, dp, pp.
class Mesh {
 public:
  // `order` must be a permutation of the five axis names (see valid_order).
  Mesh(const AxisSizes& sizes, std::string_view order);
  Mesh(int tp, int dp, int pp, std::string_view order) : Mesh({tp, dp, pp}, order) {}
  explicit Mesh(const ParallelPlan& plan)
      : Mesh({plan.tp, plan.dp, plan.pp, plan.cp}, plan.rank_order) {}

  std::int64_t size() const {
    std::int64_t product = 1;
    for (const int n : sizes_) product *= n;
    return product;
  }
  int size(Axis axis) const { return sizes_[static_cast<std::size_t>(axis)]; }
  std::int64_t stride(Axis axis) const { return strides_[static_cast<std::size_t>(axis)]; }
  std::int64_t rank(Coordinates at) const;
  Coordinates coordinates(std::int64_t rank) const;
  // The ranks of the group along `axis` that contains `rank`, in order of the axis.
  std::vector<std::int64_t> group(Axis axis, std::int64_t rank) const;
  GroupLayout layout(Axis axis, const ClusterSpec& cluster) const;
  // Of the ranks that hold the same weights: dp x cp, Megatron's data-parallel group with context
  // parallelism. Gradients are reduced and ZeRO shards over it.
  GroupLayout replica_layout(const ClusterSpec& cluster) const;

  static bool valid_order(std::string_view order);

 private:
  std::array<int, 5> sizes_{};
  std::array<std::int64_t, 5> strides_{};
};

// Megatron's second grid over the same ranks: within a pipeline rank etp x ep x expert-data, in the
// order of the names (parallel_state.py, expert_decoder_rank_generator). Its tensor axis is etp,
// its data axis the ranks that hold the same experts.
Mesh expert_mesh(const ParallelPlan& plan);

// Where the group of any axis lies, on the grid it belongs to.
GroupLayout layout_of(Axis axis, const ParallelPlan& plan, const ClusterSpec& cluster);

// Layout of `size` ranks that lie `stride` apart, for the group that lies worst: where groups and
// units do not divide one another, some straddle units.
GroupLayout layout_of(int size, std::int64_t stride, const ClusterSpec& cluster);

// The tier a transfer between neighbours on an axis of `size` ranks `stride` apart crosses, for the
// pair that crosses most.
std::size_t tier_between(int size, std::int64_t stride, const ClusterSpec& cluster);

}  // namespace costmodel
