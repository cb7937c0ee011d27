// A logical mesh of devices with two axes, how a tensor lies on it, and what it costs to bring the
// tensor from one layout to another (Alpa, arXiv:2201.12023, section 4.1, tables 1 to 3).
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "costmodel/cost/collective.hpp"

namespace planner {

// Axis 1 is the inner one: its neighbours are next to each other.
struct DeviceMesh {
  std::array<costmodel::GroupLayout, 2> axis;
  costmodel::GroupLayout whole;  // both axes
  int size(int a) const { return axis[static_cast<std::size_t>(a)].size; }
  int devices() const { return size(0) * size(1); }
};

// Devices of consecutive ranks.
DeviceMesh device_mesh(int outer, int inner, const costmodel::ClusterSpec& cluster);
// Of one stage of a plan: its data and context ranks by its tensor ranks; without tensor ranks,
// data ranks by those that experts are dealt out to.
DeviceMesh device_mesh(const costmodel::ParallelPlan& plan, const costmodel::ClusterSpec& cluster);

// What an axis cuts of a tensor: nothing, its tokens (whole sequences or parts of them), its
// columns (hidden, heads, vocabulary), or its rows sorted by expert. partial: every device has the
// whole shape and a part of the sum.
enum class Cut { whole, rows, columns, experts, partial };
inline constexpr std::array<std::string_view, 5> cut_names{"whole", "rows", "columns", "experts",
                                                           "partial"};
using TensorLayout = std::array<Cut, 2>;

// Of one device, in shares of the whole.
double local_share(const TensorLayout& layout, const DeviceMesh& mesh);

// A collective along an axis, 2 for both as one group. `message` as collective_time has it.
struct Exchange {
  costmodel::CollectiveKind kind;
  int axis;
  costmodel::Bytes message;
};

// Prices of a mesh's collectives: `wait` is added to each (ranks do not arrive together).
struct MeshPrices {
  const costmodel::ClusterSpec* cluster;
  DeviceMesh mesh;
  costmodel::Seconds wait;
  costmodel::Seconds time(const Exchange& exchange) const;
  costmodel::Seconds time(const std::vector<Exchange>& exchanges) const;
};

// The collectives that bring a tensor of `bytes` (the whole of it) from one layout to another: what
// makes it smaller first. A cut of what is whole is free. Where both axes do the same, as one group
// if that is faster. The same layout needs none; `to` may not be partial where `from` is not.
std::vector<Exchange> resharding(costmodel::Bytes bytes, const TensorLayout& from,
                                 const TensorLayout& to, const MeshPrices& prices);

// "all-reduce over axis 1".
std::string to_string(const Exchange& exchange);

}  // namespace planner
