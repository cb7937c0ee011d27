// A logical two-dimensional device mesh, the layout of a tensor on it, and the cost of resharding
// from one layout to another (Alpa, arXiv:2201.12023, section 4.1, tables 1 to 3).
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "costmodel/cost/collective.hpp"

namespace planner {

// Axis 1 is the inner one: its neighbours are adjacent devices.
struct DeviceMesh {
  std::array<costmodel::GroupLayout, 2> axis;
  costmodel::GroupLayout whole;  // both axes
  int size(int a) const { return axis[static_cast<std::size_t>(a)].size; }
  int devices() const { return size(0) * size(1); }
};

// A mesh of consecutive ranks.
DeviceMesh device_mesh(int outer, int inner, const costmodel::ClusterSpec& cluster);
// The mesh of one stage of a plan: axis 0 has its data and context ranks, axis 1 its tensor ranks.
// With tp 1, cp 1 and ep > 1 axis 1 has the expert-parallel ranks and axis 0 the other data ranks.
// With tp 1, cp > 1 and dp > 1 axis 1 has the context ranks.
DeviceMesh device_mesh(const costmodel::ParallelPlan& plan, const costmodel::ClusterSpec& cluster);

// How an axis shards a tensor. whole: replicated. rows: its tokens (complete sequences or parts of
// them). columns: hidden, heads or vocabulary. experts: its rows, sorted by expert. partial: every
// device has the full shape and a partial sum.
enum class Cut { whole, rows, columns, experts, partial };
inline constexpr std::array<std::string_view, 5> cut_names{"whole", "rows", "columns", "experts",
                                                           "partial"};
using TensorLayout = std::array<Cut, 2>;

// The size of one device's shard, as a fraction of the unsharded tensor.
double local_share(const TensorLayout& layout, const DeviceMesh& mesh);

// A collective along an axis; axis 2 is both axes as one group. `message` is defined as for
// collective_time.
struct Exchange {
  costmodel::CollectiveKind kind;
  int axis;
  costmodel::Bytes message;
};

// Prices of a mesh's collectives. `wait` is added to each (ranks do not arrive at the same time).
struct MeshPrices {
  const costmodel::ClusterSpec* cluster;
  DeviceMesh mesh;
  costmodel::Seconds wait;
  costmodel::Seconds time(const Exchange& exchange) const;
  costmodel::Seconds time(const std::vector<Exchange>& exchanges) const;
};

// The collectives that reshard a tensor of `bytes` (unsharded size), those that shrink it first.
// Slicing a replicated tensor is free. When both axes do the same, they form one group if that is
// faster. Identical layouts need none. `to` may not be partial where `from` is not.
std::vector<Exchange> resharding(costmodel::Bytes bytes, const TensorLayout& from,
                                 const TensorLayout& to, const MeshPrices& prices);

// "all-reduce over axis 1".
std::string to_string(const Exchange& exchange);

}  // namespace planner
