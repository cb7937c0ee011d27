#include "costmodel/estimate/evaluator.hpp"

// Heterogeneous stages or devices. An evaluator for the stage's devices prices each stage as one of
// a pipeline of identical stages, and the stage's share of that price goes into a common table.
// This file prices the communication between stages.
#include <algorithm>
#include <utility>

#include "costmodel/base/error.hpp"
#include "costmodel/estimate/layer_mix.hpp"
#include "costmodel/machine/cluster_groups.hpp"
#include "costmodel/plan/mesh.hpp"
#include "costmodel/schedule/closed_form.hpp"

namespace costmodel {

namespace {

// The network between two stages, and the tier that they cross.
struct Crossing {
  ClusterSpec network;
  std::size_t tier = 0;
};

Crossing crossing(const StageMesh& from, const StageMesh& to, const ClusterSpec& cluster) {
  const ClusterSpec& own = group_of(cluster, from.group);
  if (from.group != to.group) return {joined_view(cluster, own), 1};
  const std::int64_t low = std::min(from.first, to.first);
  const std::int64_t high = std::max(from.first + from.devices, to.first + to.devices) - 1;
  std::size_t tier = 0;
  while (tier + 1 < own.tiers.size() &&
         low / own.tiers[tier].devices != high / own.tiers[tier].devices)
    ++tier;
  return {own, tier};
}

}  // namespace

void Evaluator::copy_stage(const PlanCost& own, std::size_t k) {
  PlanCost& c = cost_;
  const auto copy = [k](auto& to, const auto& from) { to[k] = from[k]; };
  copy(c.times.forward, own.times.forward);
  copy(c.times.backward, own.times.backward);
  copy(c.forward, own.forward);
  copy(c.backward, own.backward);
  copy(c.recompute, own.recompute);
  copy(c.zero_forward, own.zero_forward);
  copy(c.zero_backward, own.zero_backward);
  copy(c.weights, own.weights);
  copy(c.expert_weights, own.expert_weights);
  copy(c.partial_weights, own.partial_weights);
  copy(c.layers, own.layers);
  copy(c.gradient_exposed, own.gradient_exposed);
  copy(c.gather_exposed, own.gather_exposed);
  copy(c.optimizer, own.optimizer);
  copy(c.memory, own.memory);
  c.gradient_bytes =
      max(c.gradient_bytes, Bytes(own.weights[k] * gradient_bytes_per_parameter(training_)));
  c.offloaded_layers += own.offloaded_layers;
  c.offload_exposed += own.offload_exposed;
}

// Stages with identical sharding on the same kind of device are priced together.
void Evaluator::price_meshes(const std::vector<StageMesh>& meshes,
                             const std::vector<LayerMix>& mixes) {
  std::vector<char> priced(meshes.size(), 0);
  for (std::size_t k = 0; k < meshes.size(); ++k) {
    if (priced[k] != 0) continue;
    const PlanCost& own =
        parts_[static_cast<std::size_t>(meshes[k].group)].cost(meshes[k].plan, mixes);
    for (std::size_t like = k; like < meshes.size(); ++like) {
      if (meshes[like].group != meshes[k].group || meshes[like].plan != meshes[k].plan) continue;
      copy_stage(own, like);
      priced[like] = 1;
    }
  }
}

const PlanCost& Evaluator::cost_by_stage(const ParallelPlan& plan) {
  const std::vector<StageMesh> meshes = stage_meshes(plan, cluster_);
  const std::size_t kinds = std::max<std::size_t>(1, cluster_.groups.size());
  for (std::size_t g = parts_.size(); g < kinds; ++g)
    parts_.emplace_back(model_, group_of(cluster_, static_cast<int>(g)), training_);
  PlanCost& c = cost_;
  const auto n = static_cast<std::size_t>(plan.pp);
  c = {};
  c.micro_batches = plan.micro_batches(training_.global_batch);
  c.times.blocking = !training_.overlap.pp_overlap;
  for (auto* list : {&c.times.forward, &c.times.backward, &c.zero_forward, &c.zero_backward,
                     &c.gradient_exposed, &c.gather_exposed, &c.optimizer})
    list->resize(n);
  for (auto* list : {&c.forward, &c.backward, &c.recompute}) list->resize(n);
  for (auto* list : {&c.weights, &c.expert_weights, &c.partial_weights}) list->resize(n);
  c.layers.resize(n);
  c.memory.resize(n);
  std::vector<LayerMix> mixes;
  std::int64_t first = 0;
  for (std::size_t k = 0; k < n; ++k) {
    const ParallelPlan& own = meshes[k].plan;
    const int layers = layers_of(own, model_, static_cast<int>(k));
    const Recompute again = recompute_as_run(own.recompute, training_.stack);
    mixes.push_back(layer_mix(model_, first, layers, again));
    first += layers;
  }
  price_meshes(meshes, mixes);
  for (std::size_t k = 0; k < n; ++k) {
    c.capacity.push_back(group_of(cluster_, meshes[k].group).device.memory);
    if (c.memory[k].total() / c.capacity[k] > c.memory[c.fullest].total() / c.capacity[c.fullest])
      c.fullest = k;
  }
  c.peak = c.memory[c.fullest].total();
  price_boundaries(meshes);
  price_ends(meshes);
  bound_by_stage(plan);
  return c;
}

// The devices of both stages send and receive concurrently, so a transfer takes as long as the
// slower side. If the receiver shards its input over its tensor group, no element is sent twice
// (sequence parallelism; Megatron's scatter/gather; Alpa's cross-mesh resharding with local
// all-gather, Zhuang et al. 2023, arXiv:2211.05322); otherwise each tensor rank receives a full
// copy.
void Evaluator::price_boundaries(const std::vector<StageMesh>& meshes) {
  PlanCost& c = cost_;
  const auto across = [&](const StageMesh& from, const StageMesh& to, std::int64_t tokens) {
    const ParallelPlan &a = from.plan, &b = to.plan;
    const Bytes whole = passed(b, tokens);  // of a replica of the receiver
    const bool cut = b.sequence_parallel || (training_.stack.scatter_gather && b.tp > 1);
    const Bytes taken = whole / (cut ? b.tp : 1);
    StageTransfer transfer;
    transfer.sent = taken * (static_cast<double>(to.devices) / static_cast<double>(from.devices));
    const Crossing out = crossing(from, to, cluster_), in = crossing(to, from, cluster_);
    transfer.time = max(transfer_time(transfer.sent, out.tier, from.devices, out.network),
                        transfer_time(taken, in.tier, to.devices, in.network)) +
                    training_.stack.collective_wait;
    if (cut && !b.sequence_parallel) {
      const ClusterSpec& own = group_of(cluster_, to.group);
      transfer.time +=
          collective_time(CollectiveKind::all_gather, whole, layout_of(Axis::tensor, b, own), own);
      transfer.gathered = collective_bytes(CollectiveKind::all_gather, whole, b.tp);
    }
    c.times.transfer = max(c.times.transfer, transfer.time);
    c.transfer_bytes = max(c.transfer_bytes, transfer.sent);
    SHARDPLAN_CHECK(a.dp * a.micro_batch == b.dp * b.micro_batch);
    return transfer;
  };
  for (std::size_t k = 0; k + 1 < meshes.size(); ++k) {
    const std::int64_t tokens = tokens_into(c.layers[k + 1], training_);
    c.boundaries.push_back(
        {across(meshes[k], meshes[k + 1], tokens), across(meshes[k + 1], meshes[k], tokens)});
    c.times.forward_transfer.push_back(c.boundaries.back().forward.time);
    c.times.backward_transfer.push_back(c.boundaries.back().backward.time);
  }
}

// All-reduce of the copies of the token table. If one stage shards it into more pieces, a piece of
// the other stage is reduced with several. Among three stages the slowest pair counts.
void Evaluator::price_ends(const std::vector<StageMesh>& meshes) {
  PlanCost& c = cost_;
  c.embedding_reduce = Seconds(0);
  find_tables(static_cast<int>(meshes.size()) - 1);
  if (c.table_ranks.empty() || !training_.stack.embedding_all_reduce) return;
  int tp = meshes[c.table_ranks.front()].plan.tp;
  for (const std::size_t k : c.table_ranks) tp = std::min(tp, meshes[k].plan.tp);
  const Bytes tables(shared_tables(model_, tp) * gradient_bytes_per_parameter(training_));
  const auto copies = static_cast<int>(c.table_ranks.size());
  for (int i = 0; i + 1 < copies; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const StageMesh& from = meshes[c.table_ranks[at]];
    const StageMesh& to = meshes[c.table_ranks[at + 1]];
    Crossing ends = crossing(from, to, cluster_);
    ends.network.tiers = {ends.network.tiers[ends.tier]};
    c.embedding_reduce =
        max(c.embedding_reduce, collective_time(CollectiveKind::all_reduce, tables,
                                                layout_of(copies, 1, ends.network), ends.network));
  }
}

// The lower bound for identical stages, with the shortest transfer at every boundary.
void Evaluator::bound_by_stage(const ParallelPlan& plan) {
  PlanCost& c = cost_;
  const Seconds longest = c.times.transfer;
  for (const StageBoundary& boundary : c.boundaries)
    c.times.transfer = min(c.times.transfer, min(boundary.forward.time, boundary.backward.time));
  bound(plan);
  c.times.transfer = longest;
}

}  // namespace costmodel
