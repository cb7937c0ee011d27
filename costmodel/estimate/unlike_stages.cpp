#include "costmodel/estimate/unlike_stages.hpp"

#include <algorithm>
#include <utility>

#include "costmodel/base/error.hpp"
#include "costmodel/cost/collective.hpp"
#include "costmodel/estimate/iteration_end.hpp"
#include "costmodel/estimate/stage_cost.hpp"
#include "costmodel/machine/cluster_groups.hpp"

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

// The devices of both stages send and receive concurrently, so a transfer takes as long as the
// slower side. If the receiver shards its input over its tensor group, no element is sent twice
// (sequence parallelism; Megatron's scatter/gather; Alpa's cross-mesh resharding with local
// all-gather, Zhuang et al. 2023, arXiv:2211.05322); otherwise each tensor rank receives a full
// copy.
StageTransfer transfer_across(const StageMesh& from, const StageMesh& to, std::int64_t tokens,
                              const Workload& on) {
  const ParallelPlan &a = from.plan, &b = to.plan;
  SHARDPLAN_CHECK(a.dp * a.micro_batch == b.dp * b.micro_batch);
  const StackSpec& stack = on.training.stack;
  const Bytes whole = passed_on(b, tokens, on);  // of a replica of the receiver
  const bool cut = b.sequence_parallel || (stack.collectives.scatter_gather && b.tp > 1);
  const Bytes taken = whole / (cut ? b.tp : 1);
  StageTransfer transfer;
  transfer.sent = taken * (static_cast<double>(to.devices) / static_cast<double>(from.devices));
  const Crossing out = crossing(from, to, on.cluster), in = crossing(to, from, on.cluster);
  transfer.time = max(transfer_time(transfer.sent, out.tier, from.devices, out.network),
                      transfer_time(taken, in.tier, to.devices, in.network)) +
                  stack.host.collective_wait;
  if (cut && !b.sequence_parallel) {
    const ClusterSpec& own = group_of(on.cluster, to.group);
    transfer.time +=
        collective_time(CollectiveKind::all_gather, whole, layout_of(Axis::tensor, b, own), own);
    transfer.gathered = collective_bytes(CollectiveKind::all_gather, whole, b.tp);
  }
  return transfer;
}

std::vector<StageBoundary> boundaries_of(const std::vector<StageMesh>& meshes,
                                         const std::vector<LayerMix>& mixes, const Workload& on) {
  std::vector<StageBoundary> all;
  for (std::size_t k = 0; k + 1 < meshes.size(); ++k) {
    const std::int64_t tokens = tokens_into(mixes[k + 1], on.training);
    all.push_back({transfer_across(meshes[k], meshes[k + 1], tokens, on),
                   transfer_across(meshes[k + 1], meshes[k], tokens, on)});
  }
  return all;
}

// If one stage shards the table into more pieces, a piece of the other stage is reduced with
// several. Among three stages the slowest pair counts.
TableSum table_sum_across(const std::vector<StageMesh>& meshes, const std::vector<LayerMix>& mixes,
                          const Workload& on) {
  TableSum sum{{}, table_ranks(on.model, mixes, meshes.size() - 1)};
  if (sum.ranks.empty() || !on.training.stack.collectives.embedding_all_reduce ||
      on.training.fine_tuning.adapts())
    return sum;
  int tp = meshes[sum.ranks.front()].plan.tp;
  for (const std::size_t k : sum.ranks) tp = std::min(tp, meshes[k].plan.tp);
  const Bytes tables(shared_tables(on.model, tp) * gradient_bytes_per_parameter(on.training));
  const auto copies = static_cast<int>(sum.ranks.size());
  for (std::size_t i = 0; i + 1 < sum.ranks.size(); ++i) {
    Crossing ends = crossing(meshes[sum.ranks[i]], meshes[sum.ranks[i + 1]], on.cluster);
    ends.network.tiers = {ends.network.tiers[ends.tier]};
    sum.time = max(sum.time, collective_time(CollectiveKind::all_reduce, tables,
                                             layout_of(copies, 1, ends.network), ends.network));
  }
  return sum;
}

}  // namespace

std::vector<LayerMix> unlike_mixes(const std::vector<StageMesh>& meshes, const Workload& on) {
  std::vector<LayerMix> mixes;
  std::int64_t first = 0;
  for (std::size_t k = 0; k < meshes.size(); ++k) {
    const ParallelPlan& own = meshes[k].plan;
    const int layers = layers_of(own, on.model, static_cast<int>(k));
    const Recompute again = recompute_as_run(own.recompute, on.training.stack.memory);
    mixes.push_back(layer_mix(on.model, first, layers, again));
    first += layers;
  }
  return mixes;
}

StagePrice stage_price(const PlanCost& alike, std::size_t stage) {
  return {alike.stages[stage], alike.ranks[stage], alike.times.forward[stage],
          alike.times.backward[stage], alike.offload};
}

PlanCost cost_of_unlike(const ParallelPlan& plan, const std::vector<StageMesh>& meshes,
                        const std::vector<LayerMix>& mixes, const std::vector<StagePrice>& prices,
                        const Workload& on) {
  PlanCost c;
  c.micro_batches = plan.micro_batches(on.training.global_batch);
  c.times.blocking = !on.training.overlap.pp_overlap;
  const double gradient = gradient_bytes_per_parameter(on.training);
  std::vector<StageRow> rows;
  std::vector<std::size_t> row_of;
  for (std::size_t k = 0; k < prices.size(); ++k) {
    const StagePrice& own = prices[k];
    rows.push_back(own.stage);
    row_of.push_back(k);
    c.ranks.push_back(own.rank);
    c.times.forward.push_back(own.forward);
    c.times.backward.push_back(own.backward);
    c.gradient_bytes = max(c.gradient_bytes, Bytes(own.rank.weights.all * gradient));
    c.offload.layers += own.offload.layers;
    c.offload.forward += own.offload.forward;
    c.offload.backward += own.offload.backward;
    c.capacity.push_back(group_of(on.cluster, meshes[k].group).device.memory);
    const auto used = [&c](std::size_t r) { return c.ranks[r].memory.total() / c.capacity[r]; };
    if (used(k) > used(c.fullest)) c.fullest = k;
  }
  c.stages = {std::move(rows), std::make_shared<const std::vector<std::size_t>>(row_of)};
  c.peak = c.ranks[c.fullest].memory.total();
  c.boundaries = boundaries_of(meshes, mixes, on);
  for (const StageBoundary& boundary : c.boundaries) {
    for (const StageTransfer& one : {boundary.forward, boundary.backward}) {
      c.times.transfer = max(c.times.transfer, one.time);
      c.transfer_bytes = max(c.transfer_bytes, one.sent);
    }
    c.times.forward_transfer.push_back(boundary.forward.time);
    c.times.backward_transfer.push_back(boundary.backward.time);
  }
  c.tables = table_sum_across(meshes, mixes, on);
  c.bound = bounds_of(plan, c.micro_batches, c.times, c.ranks, c.tables, end_terms(plan, on));
  return c;
}

}  // namespace costmodel
