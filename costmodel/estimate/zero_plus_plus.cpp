#include "costmodel/estimate/zero_plus_plus.hpp"

#include "costmodel/cost/collective.hpp"
#include "costmodel/cost/device_time.hpp"

namespace costmodel {

namespace {

constexpr double narrow_weight = 1, narrow_gradient = 0.5;  // bytes

// The ranks that hold the same weights: those of a node, and one of each node. Where a node has one
// of them, or all, there is one level.
struct Levels {
  GroupLayout inside, between;
};

Levels levels_of(const ParallelPlan& plan, const ClusterSpec& cluster) {
  const Mesh mesh(plan);
  const GroupLayout all = mesh.replica_layout(cluster);
  const int shards = ranks_nearby(all, cluster) / plan.cp;
  if (shards * plan.cp < 2 || shards == 0 || plan.dp % shards != 0 || plan.dp == shards)
    return {all, {}};
  const int nodes = plan.dp / shards;
  return {mesh.shard_layout(nodes, cluster), mesh.between_shards(nodes, cluster)};
}

GroupLayout holders_of_second(const ParallelPlan& plan, const ClusterSpec& cluster) {
  return Mesh(plan).shard_layout(plan.replicas() / plan.zero_plus_plus.partition, cluster);
}

}  // namespace

ShardedPasses zero_plus_plus(const PlanInputs& in, double parameters, double parts,
                             const ClusterSpec& network) {
  const TrainingSpec& training = in.on.training;
  const ZeroPlusPlus& own = in.plan.zero_plus_plus;
  const DeviceSpec& device = network.device;
  const double weight = gather_bytes_per_parameter(training),
               gradient = gradient_bytes_per_parameter(training);
  const auto sent = [&](CollectiveKind kind, double bytes, const GroupLayout& group) {
    return parts * collective_time(kind, Bytes(parameters / parts * bytes), group, network);
  };
  ShardedPasses passes;
  passes.forward =
      sent(CollectiveKind::all_gather, own.weights ? narrow_weight : weight, in.replicas);
  if (own.weights)
    passes.forward += streaming_time(Bytes(parameters * (narrow_weight + weight)), 1, device);
  passes.backward = own.partition > 1 ? sent(CollectiveKind::all_gather, weight,
                                             holders_of_second(in.plan, network))
                                      : passes.forward;
  if (!own.gradients) {
    passes.reduction = sent(CollectiveKind::reduce_scatter, gradient, in.replicas);
    return passes;
  }
  const auto [inside, between] = levels_of(in.plan, network);
  const double summed = 1.0 / inside.size;  // of them, after the first exchange
  passes.reduction =
      sent(CollectiveKind::all_to_all, narrow_gradient, inside) +
      streaming_time(Bytes(parameters * (gradient + 2 * narrow_gradient + summed * gradient)), 2,
                     device);
  if (between.size == 1) return passes;
  passes.reduction +=
      sent(CollectiveKind::all_to_all, narrow_gradient * summed, between) +
      streaming_time(Bytes(parameters * summed * (gradient + 2 * narrow_gradient)), 2, device);
  return passes;
}

Traffic zero_plus_plus_traffic(const RankWeights& weights, const ParallelPlan& plan,
                               const TrainingSpec& training, const ClusterSpec& cluster,
                               double micro_batches) {
  const ZeroPlusPlus& own = plan.zero_plus_plus;
  const int ranks = plan.replicas();
  const double weight = gather_bytes_per_parameter(training);
  Traffic sum;
  const auto add = [&](CollectiveKind kind, double bytes, int size) {
    sum.add(kind, collective_bytes(kind, Bytes(weights.all * bytes), size) * micro_batches);
  };
  const double forward = own.weights ? narrow_weight : weight;
  add(CollectiveKind::all_gather, forward, ranks);
  if (own.partition > 1) {
    add(CollectiveKind::all_gather, weight, own.partition);
  } else {
    add(CollectiveKind::all_gather, forward, ranks);
  }
  if (!own.gradients) {
    add(CollectiveKind::reduce_scatter, gradient_bytes_per_parameter(training), ranks);
    return sum;
  }
  const auto [inside, between] = levels_of(plan, cluster);
  add(CollectiveKind::all_to_all, narrow_gradient, inside.size);
  add(CollectiveKind::all_to_all, narrow_gradient / inside.size, between.size);
  return sum;
}

Bytes second_copy(const RankWeights& weights, const ParallelPlan& plan,
                  const TrainingSpec& training) {
  return Bytes(weights.all * gather_bytes_per_parameter(training) / plan.zero_plus_plus.partition);
}

}  // namespace costmodel
