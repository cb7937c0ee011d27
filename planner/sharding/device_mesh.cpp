#include "planner/sharding/device_mesh.hpp"

#include <fmt/format.h>

#include "costmodel/base/error.hpp"

namespace planner {

using namespace costmodel;

DeviceMesh device_mesh(int outer, int inner, const ClusterSpec& cluster) {
  return {{layout_of(outer, inner, cluster), layout_of(inner, 1, cluster)},
          layout_of(outer * inner, 1, cluster)};
}

DeviceMesh device_mesh(const ParallelPlan& plan, const ClusterSpec& cluster) {
  const Mesh mesh(plan);
  if (plan.tp == 1 && plan.ep > 1 && plan.cp == 1 && plan.dp % plan.ep == 0)
    return device_mesh(plan.dp / plan.ep, plan.ep, cluster);
  if (plan.tp == 1 && plan.cp > 1 && plan.dp > 1) return device_mesh(plan.dp, plan.cp, cluster);
  const auto tensor = mesh.layout(costmodel::Axis::tensor, cluster);
  const auto replicas = mesh.replica_layout(cluster);
  const std::int64_t between = std::min(tensor.stride, replicas.stride);
  return {{replicas, tensor}, layout_of(tensor.size * replicas.size, between, cluster)};
}

double local_share(const TensorLayout& layout, const DeviceMesh& mesh) {
  double share = 1;
  for (int a = 0; a < 2; ++a) {
    const Cut cut = layout[static_cast<std::size_t>(a)];
    if (cut != Cut::whole && cut != Cut::partial) share /= mesh.size(a);
  }
  return share;
}

Seconds MeshPrices::time(const Exchange& e) const {
  const auto& group = e.axis == 2 ? mesh.whole : mesh.axis[static_cast<std::size_t>(e.axis)];
  if (group.size == 1 || e.kind == CollectiveKind::none) return Seconds(0);
  return collective_time(e.kind, e.message, group, *cluster) + wait;
}

Seconds MeshPrices::time(const std::vector<Exchange>& exchanges) const {
  Seconds sum;
  for (const Exchange& e : exchanges) sum += time(e);
  return sum;
}

namespace {

// In order of execution: those that shrink the tensor come first.
constexpr std::array in_order{CollectiveKind::none, CollectiveKind::reduce_scatter,
                              CollectiveKind::all_to_all, CollectiveKind::all_reduce,
                              CollectiveKind::all_gather};

// The exchange that an axis needs; `none` is a local slice, which is free.
CollectiveKind step_of(Cut from, Cut to) {
  if (from == Cut::partial)
    return to == Cut::whole ? CollectiveKind::all_reduce : CollectiveKind::reduce_scatter;
  if (from == Cut::whole) return CollectiveKind::none;
  return to == Cut::whole ? CollectiveKind::all_gather : CollectiveKind::all_to_all;
}

// The message: what a device holds before (reduce-scatter, all-to-all) or after (all-gather) the
// exchange. Updates `held`.
Exchange exchange(CollectiveKind kind, int axis, int ranks, Bytes& held) {
  Exchange e{kind, axis, held};
  if (kind == CollectiveKind::none || kind == CollectiveKind::reduce_scatter) held = held / ranks;
  if (kind == CollectiveKind::all_gather) e.message = held = held * ranks;
  return e;
}

}  // namespace

std::vector<Exchange> resharding(Bytes bytes, const TensorLayout& from, const TensorLayout& to,
                                 const MeshPrices& prices) {
  const DeviceMesh& mesh = prices.mesh;
  std::vector<Exchange> steps, joint;
  Bytes held = bytes * local_share(from, mesh), held_jointly = held;
  bool same = from[0] == from[1] && to[0] == to[1];
  for (const CollectiveKind kind : in_order) {
    // Gathers use the slower axis while the tensor is small, scatters once it is.
    const bool outer_first = kind == CollectiveKind::all_gather;
    for (const int a : {outer_first ? 0 : 1, outer_first ? 1 : 0}) {
      const auto i = static_cast<std::size_t>(a);
      if (mesh.size(a) == 1 || from[i] == to[i] || step_of(from[i], to[i]) != kind) continue;
      const Exchange e = exchange(kind, a, mesh.size(a), held);
      if (kind != CollectiveKind::none) steps.push_back(e);
    }
  }
  same = same && steps.size() == 2;
  if (!same) return steps;
  joint.push_back(exchange(steps.front().kind, 2, mesh.devices(), held_jointly));
  return prices.time(joint) < prices.time(steps) ? joint : steps;
}

std::string to_string(const Exchange& e) {
  const auto kind = collective_names[static_cast<std::size_t>(e.kind)];
  return e.axis == 2 ? fmt::format("{} over both axes", kind)
                     : fmt::format("{} over axis {}", kind, e.axis);
}

}  // namespace planner
