#include "costmodel/plan/mesh.hpp"

#include <algorithm>
#include <numeric>

#include "costmodel/base/error.hpp"

namespace costmodel {

namespace {

std::vector<std::string_view> split(std::string_view order) {
  std::vector<std::string_view> names;
  for (std::size_t from = 0; from <= order.size();) {
    const std::size_t dash = std::min(order.find('-', from), order.size());
    names.push_back(order.substr(from, dash - from));
    from = dash + 1;
  }
  return names;
}

}  // namespace

bool Mesh::valid_order(std::string_view order) {
  auto names = split(order);
  std::ranges::sort(names);
  return names == std::vector<std::string_view>{"cp", "dp", "ep", "pp", "tp"};
}

Mesh::Mesh(const AxisSizes& n, std::string_view order) : sizes_{n.tp, n.dp, n.pp, n.cp, n.ep} {
  if (order ==
      "tp-cp-ep-dp-pp") {  // the default, without the string work: the search makes many meshes
    const std::int64_t context = n.tp, expert = context * n.cp, data = expert * n.ep;
    strides_ = {1, data, data * n.dp, context, expert};
    return;
  }
  SHARDPLAN_CHECK(valid_order(order));
  std::int64_t stride = 1;
  for (const auto name : split(order)) {
    for (std::size_t axis = 0; axis < sizes_.size(); ++axis) {
      if (axis_names[axis] != name) continue;
      strides_[axis] = stride;
      stride *= sizes_[axis];
    }
  }
}

std::int64_t Mesh::rank(Coordinates at) const {
  return at.tp * strides_[0] + at.dp * strides_[1] + at.pp * strides_[2] + at.cp * strides_[3] +
         at.ep * strides_[4];
}

Coordinates Mesh::coordinates(std::int64_t rank) const {
  const auto along = [&](std::size_t axis) {
    return static_cast<int>(rank / strides_[axis] % sizes_[axis]);
  };
  return {along(0), along(1), along(2), along(3), along(4)};
}

std::vector<std::int64_t> Mesh::group(Axis axis, std::int64_t rank) const {
  const auto i = static_cast<std::size_t>(axis);
  const std::int64_t first = rank - rank / strides_[i] % sizes_[i] * strides_[i];
  std::vector<std::int64_t> ranks;
  for (int k = 0; k < sizes_[i]; ++k) ranks.push_back(first + k * strides_[i]);
  return ranks;
}

GroupLayout Mesh::layout(Axis axis, const ClusterSpec& cluster) const {
  return layout_of(size(axis), stride(axis), cluster);
}

namespace {

// Members of a group within one unit of `unit` devices, for the worst-placed group: the fewest in
// any unit it touches. If groups divide units, or units divide groups, all groups are equal;
// otherwise some straddle (tp 6 on nodes of 8 gives 6, 2 + 4, 4 + 2, 6), and every collective waits
// for the worst.
std::int64_t fewest_inside(int size, std::int64_t stride, std::int64_t unit, std::int64_t devices) {
  const std::int64_t span = stride * size;
  if (unit % span == 0) return size;
  if (unit % stride == 0 && span % unit == 0) return unit / stride;
  if (stride % unit == 0) return 1;
  // So many members lie across whole units: groups with one such run more or fewer are cut alike.
  const std::int64_t period = unit / std::gcd(unit, stride);
  const std::int64_t counted = size < 3 * period ? size : 2 * period + size % period;
  // Later groups lie as these do.
  constexpr std::int64_t most_groups = 64;
  const std::int64_t groups = std::min(most_groups, unit / std::gcd(unit, span));
  std::int64_t fewest = size;
  for (std::int64_t g = 0; g < groups && (g + 1) * span <= std::max(devices, span); ++g) {
    std::int64_t here = 0, at = g * counted * stride / unit;
    for (std::int64_t k = 0; k < counted; ++k) {
      const std::int64_t in = (g * counted + k) * stride / unit;
      if (in != at) fewest = std::min(fewest, std::max<std::int64_t>(here, 1));
      here = in == at ? here + 1 : 1;
      at = in;
    }
    fewest = std::min(fewest, here);
  }
  return fewest;
}

// `inside_unit(devices)`: members of the group within one unit of `devices` devices.
template <class InsideUnit>
GroupLayout laid_out(int size, std::int64_t stride, const ClusterSpec& cluster,
                     InsideUnit inside_unit) {
  SHARDPLAN_CHECK(cluster.tiers.size() <= most_tiers);
  GroupLayout layout;
  layout.size = size;
  layout.stride = stride;
  layout.tiers = cluster.tiers.size();
  std::int64_t inside = 1;  // members of the group within one unit of the tier below
  for (std::size_t i = 0; i < layout.tiers; ++i) {
    const bool last = i + 1 == layout.tiers;
    std::int64_t here = last ? size : inside_unit(cluster.tiers[i].devices);
    here = std::max(here, inside);
    layout.fan[i] = static_cast<int>(ceil_div(here, inside));
    inside = last ? here : inside * layout.fan[i];
    inside = std::min<std::int64_t>(inside, size);
  }
  return layout;
}

}  // namespace

GroupLayout layout_of(int size, std::int64_t stride, const ClusterSpec& cluster) {
  return laid_out(size, stride, cluster, [&](std::int64_t unit) {
    return fewest_inside(size, stride, unit, cluster.devices);
  });
}

int ranks_nearby(const GroupLayout& group, const ClusterSpec& cluster) {
  const BytesPerSecond within = cluster.tiers.front().bandwidth;
  int ranks = 1;
  for (std::size_t i = 0; i < group.tiers && cluster.tiers[i].bandwidth * 2 >= within; ++i)
    ranks *= group.fan[i];
  return std::min(ranks, group.size);
}

namespace {

// The same weights on two pipeline ranks as well: the group of one of them, twice as many, the
// second half across the outermost tier.
GroupLayout both_ways(int ways, int size, std::int64_t stride, const ClusterSpec& cluster) {
  GroupLayout layout = layout_of(size, stride, cluster);
  layout.size *= ways;
  layout.fan[layout.tiers - 1] *= ways;
  return layout;
}

}  // namespace

GroupLayout Mesh::replica_layout(const ClusterSpec& cluster) const {
  const int d = size(Axis::data), c = size(Axis::context);
  const std::int64_t between = stride(Axis::data), within = stride(Axis::context);
  if (ways_ > 1) return both_ways(ways_, d * c, std::min(between, within), cluster);
  if (c == 1) return layout_of(d, between, cluster);
  if (d == 1) return layout_of(c, within, cluster);
  if (between == within * c) return layout_of(d * c, within, cluster);
  if (within == between * d) return layout_of(d * c, between, cluster);
  // Another axis lies between the two: count a unit's members of both.
  return laid_out(d * c, std::min(between, within), cluster, [&](std::int64_t unit) {
    return fewest_inside(d, between, unit, cluster.devices) *
           fewest_inside(c, within, unit, cluster.devices);
  });
}

GroupLayout Mesh::shard_layout(int replicate, const ClusterSpec& cluster) const {
  if (replicate == 1) return replica_layout(cluster);
  Mesh group = *this;
  group.sizes_[static_cast<std::size_t>(Axis::data)] /= replicate;
  return group.replica_layout(cluster);
}

GroupLayout Mesh::between_shards(int replicate, const ClusterSpec& cluster) const {
  return layout_of(replicate, stride(Axis::data) * (size(Axis::data) / replicate), cluster);
}

Mesh expert_mesh(const ParallelPlan& plan) {
  Mesh mesh({plan.etp, static_cast<int>(plan.expert_replicas() / plan.ways()), plan.pp, 1, plan.ep},
            plan.rank_order);
  mesh.goes(plan.ways());
  return mesh;
}

GroupLayout layout_of(Axis axis, const ParallelPlan& plan, const ClusterSpec& cluster) {
  switch (axis) {
    case Axis::tensor:
    case Axis::data:
    case Axis::pipeline:
    case Axis::context: return Mesh(plan).layout(axis, cluster);
    case Axis::expert: return expert_mesh(plan).layout(axis, cluster);
    case Axis::expert_tensor: return expert_mesh(plan).layout(Axis::tensor, cluster);
  }
  return {};
}

std::size_t tier_between(int size, std::int64_t stride, const ClusterSpec& cluster) {
  for (std::size_t i = 0; i + 1 < cluster.tiers.size(); ++i) {
    if (cluster.tiers[i].devices % (stride * size) == 0) return i;
  }
  return cluster.tiers.size() - 1;
}

}  // namespace costmodel
