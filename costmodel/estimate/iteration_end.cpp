#include "costmodel/estimate/iteration_end.hpp"

#include <algorithm>
#include <cmath>

#include "costmodel/cost/collective.hpp"
#include "costmodel/cost/device_time.hpp"
#include "costmodel/cost/kernel_time.hpp"
#include "costmodel/cost/measured_time.hpp"
#include "costmodel/estimate/node_drives.hpp"
#include "costmodel/plan/plan_schedule.hpp"
#include "costmodel/schedule/closed_form.hpp"

namespace costmodel {

namespace {

// Whether gradients are reduced during the last micro-batch's backward, not after it.
bool reduces_in_backward(const ParallelPlan& plan, const TrainingSpec& training) {
  return plan.zero < 2 && training.overlap.overlap_grad_reduce &&
         !(plan.zero == 1 && training.stack.zero.all_reduce);
}

bool waits_for_later_stages(const ParallelPlan& plan, const TrainingSpec& training) {
  return training.stack.collectives.one_collective_queue && !training.overlap.pp_overlap &&
         reduces_in_backward(plan, training) && !splits_backward(plan.schedule);
}

}  // namespace

void wait_for_later_stages(const ParallelPlan& plan, const TrainingSpec& training,
                           std::span<RankRow> ranks) {
  if (!waits_for_later_stages(plan, training)) return;
  for (std::size_t r = ranks.size() - 1; r-- > 0;)
    ranks[r].after.gradient_exposed += ranks[r + 1].after.gradient_exposed;
}

Seconds own_reduction(const ParallelPlan& plan, const TrainingSpec& training,
                      std::span<const RankRow> ranks, std::size_t rank) {
  const Seconds all = ranks[rank].after.gradient_exposed;
  const bool waits = rank + 1 < ranks.size() && waits_for_later_stages(plan, training);
  return waits ? all - ranks[rank + 1].after.gradient_exposed : all;
}

std::optional<KernelTime> optimizer_kernels(const ParallelPlan& plan, const Workload& on,
                                            const RankWeights& rank) {
  const TrainingSpec& training = on.training;
  if (training.optimizer != Optimizer::adam || training.moment_precision != Precision::fp32)
    return std::nullopt;
  return kernel_time(kernel_set(training), KernelOp::optimizer, true, own_parameters(plan, rank), 0,
                     storage_bytes(training.precision), on.cluster.device);
}

Bytes optimizer_traffic(double own, double gradients, const TrainingSpec& training) {
  const double gradient = gradient_bytes_per_parameter(training);
  const double states = optimizer_bytes_per_parameter(training);
  const double clipped = training.stack.zero.all_reduce ? gradients : own;
  return Bytes((gradients + 3 * clipped + own) * gradient +
               own * (2 * states + weight_bytes_per_parameter(training)));
}

namespace {

// Optimizers with classes of parameters: the same passes over their own states, and Muon's
// products. With ZeRO 1 unsharded matrices are the ranks' shares (Megatron-LM,
// core/optimizer/layer_wise_optimizer.py), taken as even.
Seconds unlike_optimizer_time(const PlanInputs& in, const RankParameters& rank, double own) {
  const TrainingSpec& training = in.on.training;
  const OptimizerShare& share = rank.optimizer;
  const double gradient = gradient_bytes_per_parameter(training);
  const Bytes states =
      Bytes(own * master_bytes_per_parameter(training)) + moments_kept_on(in.plan, share);
  const Bytes moved =
      Bytes(rank.all * gradient + own * (4 * gradient + weight_bytes_per_parameter(training))) +
      states * 2;
  const Seconds products =
      in.plan.zero < 1
          ? share.products
          : Seconds(sharded_states(share.products.value, share.expert_products.value, in.plan));
  return streaming_time(moved, optimizer_passes, in.on.cluster.device) + products;
}

// Part of the memory bandwidth of a node's processors that a fused Adam reaches there: ten billion
// parameters in 2.57 s on the two sockets of a DGX-2, 30 bytes each of 256 GB/s (Ren et al. 2021,
// table 4, CPU-Adam; smaller ones reach up to 0.53).
constexpr double host_adam_efficiency = 0.456;

// The step of the states that are in host memory: their gradients are sent there, unless they were
// as they were reduced; the ranks of a node share its processors, whose optimizer is bound by their
// memory; and the parameters come back, unless they stay there (ZeRO-Offload, Ren et al. 2021,
// section 4). Drives come on top.
Seconds host_step(const PlanInputs& in, const RankWeights& rank) {
  const double own = own_parameters(in.plan, rank);
  const HostOffload& offload = in.plan.offload;
  const TrainingSpec& training = in.on.training;
  const ClusterSpec& cluster = in.on.cluster;
  const double moved = own * offload.optimizer;
  const BytesPerSecond link = cluster.device.host_bandwidth;
  constexpr double fp32 = 4;
  const double weight = weight_bytes_per_parameter(training);
  const bool sent = in.plan.zero >= 2 && training.stack.memory.gradient_offload;
  const Bytes gradients(sent ? 0 : moved * gradient_bytes_per_parameter(training));
  const Bytes parameters(moved * weight * (1 - offload.parameters));
  const double passes = fp32 + 2 * optimizer_bytes_per_parameter(training) + weight;
  const auto ranks = static_cast<double>(ranks_on_a_node(cluster));
  const Seconds drives = offload.on_drives() ? step_time(in, rank_drives(in, rank)) : Seconds(0);
  return drives + (gradients + parameters) / link +
         Bytes(ranks * moved * passes) / (host_memory_bandwidth(cluster) * host_adam_efficiency);
}

Seconds optimizer_time(const PlanInputs& in, const RankParameters& rank) {
  const ClusterSpec& cluster = in.on.cluster;
  const TrainingSpec& training = in.on.training;
  const double part = sharded(rank.all, rank.experts, in.plan);
  const double own = own_parameters(in.plan, rank);
  if (!keeps_alike(training.optimizer)) return unlike_optimizer_time(in, rank, own);
  const Bytes parameters(own * weight_bytes_per_parameter(training));
  if (const auto measured = measured_optimizer(parameters, cluster.device)) {
    return *measured *
           slowdown_together(cluster.device, static_cast<double>(ranks_on_a_node(cluster)));
  }
  if (const auto kernels = optimizer_kernels(in.plan, in.on, rank)) return kernels->time;
  const double kept_gradients = in.plan.shards_states_further() ? own
                                : in.plan.zero >= 2             ? part
                                                                : rank.all;
  return streaming_time(optimizer_traffic(own, kept_gradients, training), optimizer_passes,
                        cluster.device);
}

// One message after the other, each of at most `bucket`; 0: a single one.
Seconds in_buckets(CollectiveKind kind, Bytes all, Bytes bucket, const GroupLayout& group,
                   const ClusterSpec& cluster) {
  if (bucket.value <= 0 || all <= bucket) return collective_time(kind, all, group, cluster);
  const double messages = std::ceil(all / bucket);
  return messages * collective_time(kind, all / messages, group, cluster);
}

// Between the groups of a hybrid sharding each rank's shard travels, in pieces of the buckets; of
// plain ZeRO nothing.
Seconds between_groups(const PlanInputs& in, const RankParameters& weights, CollectiveKind kind,
                       double bytes_per_parameter, Bytes bucket) {
  const Bytes others((weights.all - weights.experts) * bytes_per_parameter),
      experts(weights.experts * bytes_per_parameter);
  const int shards = in.plan.shards();
  Seconds time =
      in_buckets(kind, others / shards, bucket / shards, in.groups->others, in.on.cluster);
  if (weights.experts > 0) {
    const auto own = static_cast<double>(in.plan.expert_shards());
    time += in_buckets(kind, experts / own, bucket / own, in.groups->experts, in.on.cluster);
  }
  return time;
}

// A micro-batch's pass over all chunks of a rank, beside which collectives run; and, of groups of
// shards, that beside which the collectives between the groups do.
struct RankPass {
  Seconds forward, backward;
  Seconds between_forward, between_backward;
  double layers = 0;
  Seconds lead;  // of the host, at the end
};

// Where ZeRO-2's and 3's own collectives of a pass use other links than those between the groups,
// as within a node, the two run at the same time, while the pass lasts; else one comes after the
// other.
Seconds beside_zero(const PlanInputs& in, Seconds pass, Seconds exposed, Seconds sent) {
  const bool apart = in.replicas.outermost() < in.groups->others.outermost();
  return apart ? pass + exposed : max(Seconds(0), pass - sent);
}

RankPass pass_of(const PlanInputs& in, std::span<const StageRow> rows,
                 const AlikeStages::Kind& kind) {
  RankPass pass;
  for (int v = 0; v < in.plan.chunks(); ++v) {
    const StageRow& row = rows[in.row_of(v, kind.rank)];
    pass.forward += row.forward.time();
    pass.backward += row.backward.time() + row.recompute.time();
    pass.lead = row.lead;
    if (in.groups == nullptr) continue;
    pass.between_forward +=
        beside_zero(in, row.forward.time(), row.zero_forward, row.zero_sent_forward);
    pass.between_backward += beside_zero(in, row.backward.time() + row.recompute.time(),
                                         row.zero_backward, row.zero_sent_backward);
  }
  pass.layers = std::max(1, kind.layers.layers());
  // Interleaved: a chunk's gradients are complete p micro-batches before the next chunk's, and
  // its reduction overlaps with those; likewise the gather of a chunk's parameters.
  if (!in_whole_rounds(in.plan)) return pass;
  const int group = in.plan.choices.group > 0 ? in.plan.choices.group : in.plan.pp;
  const auto rounds = static_cast<double>(std::min<std::int64_t>(group, in.micro_batches));
  pass.forward = pass.forward * rounds;
  pass.backward = pass.backward * rounds;
  if (in.groups == nullptr) return pass;
  pass.between_forward = pass.between_forward * rounds;
  pass.between_backward = pass.between_backward * rounds;
  return pass;
}

// The parameter tensors of a rank of a dense model: of each layer its matrices and two norms; a
// table at an end.
double parameter_tensors(const PlanInputs& in, double layers) {
  return layers * (in.layers.kinds.front().again->products + 2) + 1;
}

// The host's time to clip gradients and to start the optimizer: it handles each parameter tensor by
// itself, and the kernels are launched for many of them at the end.
Seconds launches_of_step(const PlanInputs& in, const AlikeStages::Kind& rank) {
  const Seconds each = in.on.training.stack.host.parameter;
  if (each.value == 0 || in.plan.pp > 1) return {};
  double tensors = in.layers.embedding->tensors + in.layers.head->tensors;
  for (const LayerPrices::Kind& kind : in.layers.all())
    tensors += static_cast<double>(kind.again->tensors) * kind.number(rank.layers);
  return each * tensors;
}

AfterPipeline after_pipeline(const PlanInputs& in, const RankParameters& weights,
                             const RankPass& pass, const GroupLayout& tensor) {
  const TrainingSpec& training = in.on.training;
  const ClusterSpec& cluster = in.on.cluster;
  const int zero = in.plan.zero;
  const double gradient_size = gradient_bytes_per_parameter(training);
  const auto alone = [&](CollectiveKind kind, double bytes_per_parameter, Bytes bucket) {
    const Bytes all(weights.all * bytes_per_parameter);
    if (weights.experts == 0) return in_buckets(kind, all, bucket, in.replicas, cluster);
    const Bytes experts(weights.experts * bytes_per_parameter);
    return in_buckets(kind, all - experts, bucket, in.replicas, cluster) +
           in_buckets(kind, experts, bucket, in.expert_replicas, cluster);
  };
  // Overlaps with one micro-batch's pass, except the last bucket (one layer's part).
  const bool hides = !training.overlap.nothing_hidden;
  const double slowdown = training.overlap.slowdown;
  const auto exposed = [layers = pass.layers, hides, slowdown](Seconds time, Seconds window,
                                                               bool overlap) {
    if (!hides || !overlap) return time;
    return time / layers + exposed_beside(time * ((layers - 1) / layers), window, slowdown);
  };
  AfterPipeline after;
  const Bytes bucket = training.stack.collectives.gradient_bucket;
  const bool groups = in.groups != nullptr;
  const auto between = [&] {
    return between_groups(in, weights, outer_reduction(in.plan), gradient_size, bucket);
  };
  if (zero < 2) {
    const auto kind = gradient_reduction(zero, training);
    const bool at_once = zero == 1 && training.stack.zero.all_reduce;
    const bool beside = reduces_in_backward(in.plan, training) &&
                        training.stack.collectives.hides_reduction(in.plan.tp);
    Seconds time = alone(kind, gradient_size, at_once ? Bytes(0) : bucket);
    if (groups) time += between();
    after.gradient_exposed = exposed(time, pass.backward, beside);
  } else if (groups) {
    after.gradient_exposed =
        exposed(between(), pass.between_backward, training.overlap.overlap_grad_reduce);
  }
  if ((zero == 1 || zero == 2) && !gathers_in_forward(in.plan, training)) {
    const double weight_size = gather_bytes_per_parameter(training);
    const Seconds slice = training.stack.zero.slice;
    const auto kind = parameter_gather(zero, training);
    const bool owners = kind == CollectiveKind::broadcast;
    double tensors = slice.value > 0 || owners ? parameter_tensors(in, pass.layers) : 1;
    if (owners) tensors = std::min<double>(tensors, in.replicas.size);
    const Bytes each = tensors > 1 ? Bytes(weights.all * weight_size / tensors) : Bytes(0);
    after.gather_exposed = exposed(alone(kind, weight_size, each), pass.forward,
                                   training.overlap.overlap_param_gather);
    if (in.replicas.size > 1) after.gather_exposed += slice * (tensors * in.replicas.size);
  }
  if (groups && in.plan.shards_states_further()) {
    after.gather_exposed += exposed(between_groups(in, weights, CollectiveKind::all_gather,
                                                   gather_bytes_per_parameter(training), Bytes(0)),
                                    pass.between_forward, training.overlap.overlap_param_gather);
  }
  // One message with all gradients of a rank, after the last micro-batch.
  after.gradient_exposed += collective_time(
      CollectiveKind::all_reduce, Bytes(weights.partial * gradient_size), tensor, cluster);
  after.optimizer = optimizer_time(in, weights);
  return after;
}

// Device and host update their shares at the same time.
void share_with_host(const PlanInputs& in, std::span<const RankParameters> weights,
                     std::vector<AfterPipeline>& all) {
  const double away = in.plan.offload.optimizer;
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i].optimizer = max(all[i].optimizer * (1 - away), host_step(in, weights[i]));
  }
}

}  // namespace

std::vector<AfterPipeline> after_pipeline(const PlanInputs& in,
                                          std::span<const RankParameters> weights,
                                          std::span<const StageRow> rows) {
  const GroupLayout tensor = in.mesh.layout(Axis::tensor, in.on.cluster);
  std::vector<AfterPipeline> all;
  all.reserve(weights.size());
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const AlikeStages::Kind& rank = in.alike->kinds[i];
    const RankPass pass = pass_of(in, rows, rank);
    AfterPipeline& after = all.emplace_back(after_pipeline(in, weights[i], pass, tensor));
    // The host launches on while the device waits for the last sums, and for what it gathers during
    // the first pass.
    const Seconds gathers =
        in.on.training.overlap.overlap_param_gather ? after.gather_exposed : Seconds(0);
    const Seconds lead = pass.lead + after.gradient_exposed + gathers;
    after.optimizer = max(after.optimizer, launches_of_step(in, rank) - lead);
  }
  if (in.plan.offload.optimizer > 0) share_with_host(in, weights, all);
  for (std::size_t i = 0; i < all.size(); ++i) all[i].optimizer += weights[i].casts;
  return all;
}

// Megatron-LM's embedding group: core/parallel_state.py.
std::vector<std::size_t> table_ranks(const ModelSpec& model, std::span<const LayerMix> mixes,
                                     std::size_t last) {
  std::vector<std::size_t> ranks;
  ranks.reserve(3);
  ranks.push_back(0);
  const auto add = [&ranks](std::size_t rank) {
    if (ranks.back() != rank) ranks.push_back(rank);
  };
  if (model.encoder_decoder()) {
    for (std::size_t k = 0; k < mixes.size(); ++k) {
      if (mixes[k].decoder_starts) add(k);
    }
  }
  if (model.tie_embeddings || model.mtp_layers > 0) add(last);
  if (ranks.size() == 1) ranks.clear();
  return ranks;
}

namespace {

// The rank of the last stage, but the first one's where that has it too: with its own table.
std::size_t last_table(const PlanInputs& in) {
  return in.has_stage(0, in.last_stage()) ? 0 : in.rank_of(in.last_stage());
}

}  // namespace

// A ring of three is as slow as its slowest link.
TableSum table_sum(const PlanInputs& in) {
  const ClusterSpec& cluster = in.on.cluster;
  TableSum sum{{}, table_ranks(in.on.model, in.mixes(), last_table(in))};
  if (sum.ranks.empty() || !in.on.training.stack.collectives.embedding_all_reduce ||
      in.on.training.fine_tuning.adapts())
    return sum;
  std::size_t longest = 0;
  for (std::size_t i = 1; i < sum.ranks.size(); ++i)
    longest = std::max(longest, sum.ranks[i] - sum.ranks[i - 1]);
  const GroupLayout group =
      layout_of(static_cast<int>(sum.ranks.size()),
                in.mesh.stride(Axis::pipeline) * static_cast<std::int64_t>(longest), cluster);
  sum.time = collective_time(
      CollectiveKind::all_reduce,
      Bytes(shared_tables(in.on.model, in.plan.tp) * gradient_bytes_per_parameter(in.on.training)),
      group, cluster);
  return sum;
}

EndTerms end_terms(const ParallelPlan& plan, const Workload& on) {
  return {on.training.stack.host.iteration, straggler_factor(on.cluster),
          ends_apart(plan.schedule, on.training.stack.collectives),
          on.cluster.measured.time_factor};
}

namespace {

// Every transfer as short as the shortest.
PipelineTimes with_shortest_transfer(PipelineTimes times) {
  for (const auto* transfers : {&times.forward_transfer, &times.backward_transfer}) {
    for (const Seconds transfer : *transfers) times.transfer = min(times.transfer, transfer);
  }
  times.forward_transfer.clear();
  times.backward_transfer.clear();
  return times;
}

// A schedule with split backward may end on any rank.
Bounds split_bounds(const ParallelPlan& plan, std::int64_t m, const PipelineTimes& times,
                    std::span<const RankRow> ranks, const EndTerms& terms) {
  const bool apart = terms.apart;
  Bounds bound;
  bound.pipeline = apart ? split_span_bound(plan.schedule, plan.pp, m, times)
                         : pipeline_lower_bound(plan.schedule, plan.pp, plan.vpp, m, times);
  Seconds least, optimizer, gather;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    const AfterPipeline& after = ranks[r].after;
    const Seconds own =
        after.gradient_exposed + (apart ? after.optimizer + after.gather_exposed : Seconds(0));
    least = r == 0 ? own : min(least, own);
    optimizer = max(optimizer, after.optimizer);
    gather = max(gather, after.gather_exposed);
  }
  bound.iteration =
      (bound.pipeline + least + (apart ? Seconds(0) : optimizer + gather) + terms.host) *
      terms.factor();
  return bound;
}

}  // namespace

Seconds pipeline_bound(const ParallelPlan& plan, const OrderChoices& choices, std::int64_t m,
                       const PipelineTimes& times) {
  if (!times.forward_transfer.empty())
    return pipeline_bound(plan, choices, m, with_shortest_transfer(times));
  return pipeline_lower_bound(plan.schedule, plan.pp, plan.vpp, m, times, choices);
}

Bounds bounds_of(const ParallelPlan& plan, std::int64_t m, const PipelineTimes& times,
                 std::span<const RankRow> ranks, const TableSum& tables, const EndTerms& terms) {
  if (!times.forward_transfer.empty())
    return bounds_of(plan, m, with_shortest_transfer(times), ranks, tables, terms);
  if (splits_backward(plan.schedule)) return split_bounds(plan, m, times, ranks, terms);
  Bounds bound;
  bound.pipeline = pipeline_lower_bound(plan.schedule, plan.pp, plan.vpp, m, times, plan.choices);
  Seconds optimizer, gather;
  for (const RankRow& rank : ranks) {
    optimizer = max(optimizer, rank.after.optimizer);
    gather = max(gather, rank.after.gather_exposed);
  }
  // Rank 0 ends last in every schedule but the ideal one, and pays its own gradient reduction after
  // that.
  const Seconds reduce =
      row_of(plan.schedule).waits ? ranks.front().after.gradient_exposed + tables.time : Seconds(0);
  bound.iteration = (bound.pipeline + reduce + optimizer + gather + terms.host) * terms.factor();
  return bound;
}

bool ends_apart(ScheduleKind kind, const StackCollectives& collectives) {
  return splits_backward(kind) && collectives.post_validation;
}

Seconds pipeline_of(const SimulationResult& run, bool apart) {
  Seconds longest;
  for (std::size_t r = 0; r < run.finish.size(); ++r)
    longest = max(longest, run.finish[r] - (apart ? run.begin[r] : Seconds(0)));
  return longest;
}

Seconds reduced(Seconds end, const PlanCost& c, std::size_t rank) {
  end += c.ranks[rank].after.gradient_exposed;
  if (c.sums_table(rank)) end += c.tables.time;
  return end;
}

namespace {

// Ranks do not synchronise at the gradient norm (Qi et al. 2024, section 4): each starts its next
// iteration when its own has ended, so the iteration time is the longest span of a rank, from first
// start to end.
Ending ending_apart(const PlanCost& c, const SimulationResult& run) {
  Ending end;
  Seconds longest(-1);
  for (std::size_t r = 0; r < run.finish.size(); ++r) {
    const Seconds busy = reduced(run.finish[r] - run.begin[r], c, r);
    const Seconds own = busy + c.ranks[r].after.optimizer + c.ranks[r].after.gather_exposed;
    if (own <= longest) continue;
    longest = own;
    end.meeting = busy;
    end.critical = r;
    end.optimizer = c.ranks[r].after.optimizer;
    end.gather = c.ranks[r].after.gather_exposed;
    end.begin = run.begin[r];
  }
  return end;
}

// All ranks synchronise at the gradient norm, then run the optimizer, then gather parameters.
Ending ending_together(const PlanCost& c, const SimulationResult& run) {
  Ending end;
  end.meeting = Seconds(-1);
  for (std::size_t r = 0; r < run.finish.size(); ++r) {
    const Seconds done = reduced(run.finish[r], c, r);
    if (done > end.meeting) {
      end.meeting = done;
      end.critical = r;
    }
    end.optimizer = max(end.optimizer, c.ranks[r].after.optimizer);
    end.gather = max(end.gather, c.ranks[r].after.gather_exposed);
  }
  return end;
}

}  // namespace

Ending ending(const PlanCost& c, const SimulationResult& run, const EndTerms& terms) {
  return ended(terms.apart ? ending_apart(c, run) : ending_together(c, run), terms);
}

Ending ended(Ending end, const EndTerms& terms) {
  const Seconds even = end.meeting + end.optimizer + end.gather + terms.host;
  end.waiting = even * (terms.straggler - 1);
  end.own_runs = terms.own_runs;
  end.iteration = (even + end.waiting) * terms.own_runs;
  return end;
}

}  // namespace costmodel
