#include "costmodel/estimate/plan_cost.hpp"

#include "costmodel/estimate/iteration_end.hpp"
#include "costmodel/estimate/memory.hpp"
#include "costmodel/estimate/plan_inputs.hpp"
#include "costmodel/estimate/stage_cost.hpp"

namespace costmodel {

namespace {

std::size_t fullest_of(const std::vector<RankRow>& ranks) {
  std::size_t fullest = 0;
  Bytes peak;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    const Bytes total = ranks[r].memory.total();
    if (total <= peak) continue;
    peak = total;
    fullest = r;
  }
  return fullest;
}

// What a node's ranks keep in host memory and on drives, as if each kept what the fullest does; and
// half as much again of the former, as DeepSpeed's estimates add for pinned buffers and copies
// (additional_buffer_factor of estimate_zero3_model_states_mem_needs,
// deepspeed/runtime/zero/stage3.py).
void set_host(const ClusterSpec& cluster, PlanCost& c) {
  constexpr double buffers = 1.5;
  Bytes most, drives;
  for (const RankRow& rank : c.ranks) {
    most = max(most, rank.memory.host * buffers + rank.memory.pinned);
    drives = max(drives, rank.memory.drives);
  }
  const auto ranks = static_cast<double>(ranks_on_a_node(cluster));
  c.host = most * ranks;
  c.drives = drives * ranks;
  const auto holds = [](Bytes size, Bytes kept) { return size.value <= 0 || kept <= size; };
  c.in_host = holds(cluster.host_memory, c.host) && holds(cluster.drives.size, c.drives);
}

}  // namespace

PlanCost plan_cost(const PlanInputs& in, PlanCost&& spent) {
  PlanCost c;
  c.micro_batches = in.micro_batches;
  const std::vector<RankParameters> weights = rank_weights(in);
  std::vector<StageRow> rows = stage_rows(in, weights, std::move(spent.stages).storage());
  Transfers transfers = transfers_of(in);
  c.transfer_bytes = transfers.longest.sent;
  c.ranks = rank_rows(in, weights, after_pipeline(in, weights, rows), c.transfer_bytes,
                      std::move(spent.ranks));
  wait_for_later_stages(in.plan, in.on.training, c.ranks);
  if (!keeps_alike(in.on.training.optimizer)) c.optimizer = weights.front().optimizer;
  c.offload = offload_of(in);
  if (c.offload.layers > 0)
    c.ranks.front().memory = without_offloaded(in, c.offload, c.ranks.front().memory);
  c.fullest = fullest_of(c.ranks);
  c.peak = c.ranks[c.fullest].memory.total();
  if (in.plan.offload.any()) set_host(in.on.cluster, c);
  const double gradient = gradient_bytes_per_parameter(in.on.training);
  for (const RankParameters& rank : weights)
    c.gradient_bytes = max(c.gradient_bytes, Bytes(rank.all * gradient));
  c.times = stage_times(in, rows, transfers, c.offload, std::move(spent.times));
  c.stages = StageRows(std::move(rows), in.alike->row_of);
  c.shares = held_shares(in);
  c.tables = table_sum(in);
  c.boundaries = std::move(transfers.boundaries);
  c.bound =
      bounds_of(in.plan, c.micro_batches, c.times, c.ranks, c.tables, end_terms(in.plan, in.on));
  return c;
}

}  // namespace costmodel
