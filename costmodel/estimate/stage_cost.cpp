#include "costmodel/estimate/stage_cost.hpp"

#include <algorithm>
#include <optional>

#include "costmodel/cost/collective.hpp"
#include "costmodel/estimate/launch_queue.hpp"
#include "costmodel/estimate/node_drives.hpp"
#include "costmodel/estimate/sent_modules.hpp"
#include "costmodel/estimate/shard_copies.hpp"
#include "costmodel/estimate/zero_plus_plus.hpp"
#include "costmodel/machine/cluster_spec.hpp"
#include "costmodel/plan/mesh.hpp"

namespace costmodel {

namespace {

void add(RankWeights& sum, const LayerCost& layer, double times) {
  sum.all += times * layer.weights;
  sum.experts += times * layer.expert_weights;
  sum.partial += times * layer.partial_weights;
  sum.casts += layer.weight_casts * times;
  if (layer.frozen.value == 0) return;
  sum.frozen += layer.frozen * times;
  sum.frozen_experts += layer.frozen_experts * times;
}

// The encoder's final norm and the decoder's embedding; the stage may already have their tables.
void add_decoder_start(const PlanInputs& in, std::size_t stage, RankWeights& sum) {
  add(sum, *in.layers.decoder_embedding, 1);
  const ModelSpec& model = in.on.model;
  const double table = vocabulary_table(model, in.plan.tp), all = shared_tables(model, in.plan.tp);
  if (stage == 0) {
    sum.all -= all;
    if (in.plan.sequence_parallel) sum.partial -= all - table;
  } else if (stage == in.last_stage() && model.tie_embeddings) {
    sum.all -= table;
  }
}

// The layers of multi-token prediction, each with its start, a layer and the head again. Their copy
// of the token table stays with the last rank, unless it has the first one.
void add_mtp(const PlanInputs& in, bool has_first, RankWeights& sum) {
  const auto more = static_cast<double>(in.on.model.mtp_layers);
  const double table = vocabulary_table(in.on.model, in.plan.tp);
  const LayerCost &own = *in.layers.mtp_layer, &start = *in.layers.mtp_start;
  sum.all += (own.weights + start.weights - table) * more + (has_first ? 0 : table);
  sum.experts += own.expert_weights * more;
  sum.partial += (own.partial_weights + start.partial_weights) * more;
  sum.casts += (own.weight_casts + start.weight_casts) * more;
}

RankWeights weights_on(const PlanInputs& in, const AlikeStages::Kind& ranks) {
  const bool has_first = in.has_stage(ranks.rank, 0),
             has_last = in.has_stage(ranks.rank, in.last_stage());
  RankWeights sum;
  for (const LayerPrices::Kind& kind : in.layers.all())
    add(sum, *kind.again, kind.number(ranks.layers));
  if (ranks.layers.decoder_starts) add_decoder_start(in, ranks.rank, sum);
  const auto add_end = [&sum](const LayerCost& layer) {
    sum.all += layer.weights;
    sum.partial += layer.partial_weights;
    sum.frozen += layer.frozen;
  };
  if (has_first) {
    add_end(*in.layers.embedding);
    for (const LayerPrices::Tower& own : in.layers.towers) add(sum, *own.cost, own.number);
  }
  if (!has_last) return sum;
  add_end(*in.layers.head);
  if (in.layers.mtp_layer != nullptr) add_mtp(in, has_first, sum);
  if (in.on.model.tie_embeddings && has_first) {  // one table serves both ends
    const double table = vocabulary_table(in.on.model, in.plan.tp);
    if (in.on.training.fine_tuning.adapts()) {
      sum.frozen -= Bytes(table * storage_bytes(in.on.training.precision));
    } else {
      sum.all -= table;
    }
  }
  return sum;
}

// As weights_on; tables that a rank has once are counted once.
OptimizerShare optimizer_on(const PlanInputs& in, const AlikeStages::Kind& ranks) {
  const bool has_first = in.has_stage(ranks.rank, 0),
             has_last = in.has_stage(ranks.rank, in.last_stage());
  const ModelSpec& model = in.on.model;
  const TrainingSpec& training = in.on.training;
  const auto table_of = [&](double elements) {
    const auto columns = static_cast<double>(model.embedding_width());
    return OptimizerShare{moments_of_table(elements / columns, columns, training.optimizer,
                                           storage_bytes(training.moment_precision)),
                          {},
                          {},
                          {}};
  };
  const bool frozen = training.fine_tuning.adapts();
  const OptimizerShare table =
      frozen ? OptimizerShare{} : table_of(vocabulary_table(model, in.plan.tp));
  OptimizerShare sum;
  for (const LayerPrices::Kind& kind : in.layers.all())
    sum.add(kind.again->optimizer, kind.number(ranks.layers));
  if (has_first) {
    sum.add(in.layers.embedding->optimizer, 1);
    for (const LayerPrices::Tower& own : in.layers.towers) sum.add(own.cost->optimizer, own.number);
  }
  if (ranks.layers.decoder_starts) {
    sum.add(in.layers.decoder_embedding->optimizer, 1);
    if (has_first) {
      sum.add(table_of(shared_tables(model, in.plan.tp)), -1);
    } else if (has_last && model.tie_embeddings) {
      sum.add(table, -1);
    }
  }
  if (!has_last) return sum;
  sum.add(in.layers.head->optimizer, 1);
  if (in.layers.mtp_layer != nullptr) {
    const auto more = static_cast<double>(model.mtp_layers);
    sum.add(in.layers.mtp_layer->optimizer, more);
    sum.add(in.layers.mtp_start->optimizer, more);
    sum.add(table, (has_first ? 0 : 1) - more);
  }
  if (model.tie_embeddings && has_first) sum.add(table, -1);
  return sum;
}

}  // namespace

std::vector<RankParameters> rank_weights(const PlanInputs& in) {
  std::vector<RankParameters> all;
  all.reserve(in.alike->kinds.size());
  for (const AlikeStages::Kind& kind : in.alike->kinds) all.push_back({weights_on(in, kind), {}});
  if (keeps_alike(in.on.training.optimizer)) return all;
  for (std::size_t i = 0; i < all.size(); ++i)
    all[i].optimizer = optimizer_on(in, in.alike->kinds[i]);
  return all;
}

namespace {

// Nothing below the first layer's adapters needs a gradient. With recomputation frameworks compute
// it all the same (Transformers' enable_input_require_grads).
void end_at_first_adapter(const PlanInputs& in, StageRow& row) {
  for (const LayerPrices::Kind& kind : in.layers.all()) {
    if (kind.number(row.layers) == 0) continue;
    row.backward.add(kind.whole->backward, -1);
    row.backward += kind.whole->first_backward;
    return;
  }
}

// The layers of a stage.
void sum_layers(const PlanInputs& in, std::size_t k, StageRow& row) {
  row.layers = in.mixes()[k];
  const bool split = splits_backward(in.plan.schedule);
  const bool repeats = in.plan.recompute.granularity != Recomputation::none;
  const auto add = [&](const LayerCost& layer, double times) {
    row.forward.add(layer.forward, times);
    if (split) {
      row.backward.add(layer.input_gradient + layer.weight_gradient, times);
      row.weight_gradient.add(layer.weight_gradient, times);
    } else {
      row.backward.add(layer.backward, times);
    }
    if (repeats) row.recompute.add(layer.recompute, times);
  };
  for (const LayerPrices::Kind& kind : in.layers.all()) {
    const int layers = kind.number(row.layers), repeated = kind.repeated(row.layers);
    if (repeated > 0) add(*kind.again, repeated);
    if (layers > repeated) add(*kind.whole, layers - repeated);
  }
  if (row.layers.decoder_starts) {
    row.forward += in.layers.decoder_embedding->forward;
    row.backward += in.layers.decoder_embedding->backward;
  }
  if (k == 0) {
    add(*in.layers.embedding, 1);
    for (const LayerPrices::Tower& own : in.layers.towers) add(*own.cost, own.number);
  }
  if (k == 0 && in.on.training.fine_tuning.adapts() && !repeats) end_at_first_adapter(in, row);
  if (k < in.last_stage()) return;
  add(*in.layers.head, 1);
  if (in.layers.mtp_layer == nullptr) return;
  const auto more = static_cast<double>(in.on.model.mtp_layers);
  for (const LayerCost* part : {in.layers.mtp_start, in.layers.mtp_layer, in.layers.head}) {
    row.forward.add(part->forward, more);
    row.backward.add(part->backward, more);
    if (split) row.weight_gradient.add(part->weight_gradient, more);
    row.recompute.add(part->recompute, more);
  }
}

// Of computation concurrent with the exchange of experts, which takes some of the multiprocessors.
double exchange_slowdown(const PlanInputs& in) {
  const ExpertRecipe& recipe = in.plan.experts;
  const double all = in.on.cluster.device.multiprocessors;
  const double taken = sends_once_a_rank(recipe.dispatcher) ? recipe.multiprocessors : 0;
  return taken > 0 && taken < all ? all / (all - taken) : in.on.training.overlap.slowdown;
}

// The exchange of a micro-batch concurrent with the computation of another one: a pair of a forward
// and a backward takes max(exchange of one, computation of the other), twice, in place of the sums.
// The warm-up's share has no other micro-batch beside it. Without a graph of the iteration the host
// launches both, and only a part is hidden: none of the time that the host's launches take.
void hide_expert_exchange(const PlanInputs& in, StageRow& row) {
  const ParallelPlan& plan = in.plan;
  if (!plan.experts.overlap || in.on.model.experts == 0 || overlaps(plan.schedule)) return;
  if (in.on.training.overlap.nothing_hidden) return;
  const double p = plan.pp, v = plan.vpp;
  const double alone =
      std::min(1.0, ((p - 1) * 2 + (v - 1) * p + 1) / (static_cast<double>(in.micro_batches) * v));
  const double slowdown = exchange_slowdown(in);
  const TrainingSpec& training = in.on.training;
  const double hidden =
      (1 - alone) * (training.overlap.cuda_graph ? 1 : training.stack.experts.eager_overlap);
  const auto hide = [&](Cost& cost, Seconds window) {
    const Seconds less = cost.ep_comm - exposed_beside(cost.ep_comm, window, slowdown);
    cost.hide_exchange(hidden * min(less, cost.ep_slack));
  };
  const Seconds ahead = row.forward.time() - row.forward.ep_comm;
  const Seconds behind = row.backward.time() - row.backward.ep_comm;
  hide(row.forward, behind);
  hide(row.backward, ahead);
}

// What of the plan sets the pace of computation. The expected number of ranks on a node that
// compute concurrently while one does slows it down, where a node's share things; the others may
// idle in the pipeline's bubble. A power-limited device that idles there computes faster in the
// rest of the time, unless kernel launches are the bottleneck.
struct Pace {
  std::optional<double> together, boosted;
  Seconds launch;
};

Pace pace_of(const PlanInputs& in) {
  const DeviceSpec& device = in.on.cluster.device;
  Pace pace;
  if (!device.together.empty()) {
    const auto others = static_cast<double>(ranks_on_a_node(in.on.cluster)) - 1;
    pace.together = slowdown_together(device, 1 + others * (1 - idle_share(in)));
  }
  if (in.plan.pp > 1 && device.idle_boost != 0)
    pace.boosted = 1 - device.idle_boost * idle_share(in);
  pace.launch = kernel_launch(in.on);
  return pace;
}

template <class Change>
void change_costs(StageRow& row, Change change) {
  for (Cost* cost : {&row.forward, &row.backward, &row.recompute, &row.weight_gradient})
    change(*cost);
}

// Replicas wait for the one whose packed samples are the longest: at every collective of ZeRO 2 and
// 3, those of a group of shards, and every exchange of experts, else once an iteration.
void add_longest(const PlanInputs& in, StageRow& row) {
  const TrainingSpec& training = in.on.training;
  const bool each = in.plan.zero >= 2 || (in.on.model.experts > 0 && in.plan.ep > 1);
  const auto excess_of = [&](int ranks, double sequences) {
    return longest_excess(training.packing, training.sequence, ranks, sequences);
  };
  const auto b = static_cast<double>(in.plan.micro_batch),
             m = static_cast<double>(in.micro_batches);
  double excess = each ? excess_of(in.plan.dp / in.plan.dp_replicate, b) : 0;
  if (!each || in.plan.dp_replicate > 1) excess = std::max(excess, excess_of(in.plan.dp, b * m));
  for (const LayerPrices::Kind& kind : in.layers.all()) {
    const int layers = kind.number(row.layers), repeated = kind.repeated(row.layers);
    row.longest_forward += kind.whole->attention_forward * (excess * layers);
    row.longest_backward += kind.again->attention_backward * (excess * repeated) +
                            kind.whole->attention_backward * (excess * (layers - repeated));
  }
}

// What the host's lead hides of the waits of the only stage, where the framework's kernels are
// known, and so how many it launches.
void queue_launches(const PlanInputs& in, StageRow& row) {
  if (in.plan.pp > 1 || in.plan.chunks() > 1 || kernel_set(in.on.training).empty()) return;
  QueuedWork work;
  work.micro_batches = in.micro_batches;
  work.forward = {row.forward.waited - row.gathers_in_waits_forward,
                  row.forward.time() + row.zero_forward - row.forward.host};
  work.backward = {row.backward.waited + row.recompute.waited - row.gathers_in_waits_backward,
                   row.backward.time() + row.recompute.time() + row.zero_backward -
                       row.backward.host - row.recompute.host};
  // The host reads how many rows each expert has (torch.bincount does, and splits of an exchange).
  if (in.on.model.experts > 0) work.after_wait = max(Seconds(0), row.head_lead);
  const QueueLead lead = queue_lead(work);
  row.forward.compute -= lead.forward;
  row.backward.compute -= lead.backward;
  row.hidden_forward = lead.forward;
  row.hidden_backward = lead.backward;
  row.lead = lead.left;
}

// Of a row that is empty.
void price(const PlanInputs& in, std::size_t k, const Pace& pace, StageRow& row) {
  sum_layers(in, k, row);
  add_copies(in, k, row);
  hide_expert_exchange(in, row);
  if (in.on.training.packing.attended > 0) add_longest(in, row);
  if (pace.together) {
    change_costs(row, [&](Cost& cost) { cost.compute *= *pace.together; });
    row.longest_forward = row.longest_forward * *pace.together;
    row.longest_backward = row.longest_backward * *pace.together;
  }
  if (!pace.boosted) return;
  change_costs(row, [&](Cost& cost) {
    const Seconds host = max(Seconds(0), cost.host - (cost.time() - cost.compute));
    const Seconds shorter = max(Seconds(0), cost.compute - cost.hidden) * (1 - *pace.boosted);
    cost.compute = max(cost.compute - shorter, min(cost.compute, host));
  });
}

// The same cluster where a node has the port of one device instead of one port per device.
ClusterSpec one_port(ClusterSpec cluster) {
  const auto ports = static_cast<double>(cluster.tiers.front().devices);
  for (std::size_t i = 1; i < cluster.tiers.size(); ++i)
    cluster.tiers[i].bandwidth = cluster.tiers[i].bandwidth / ports;
  return cluster;
}

// Between a device and its host, of a layer: its shard of parameters in host memory is fetched
// before each gather, and its shard of gradients sent there after the reduction.
struct HostTransfers {
  Seconds fetch, store;
};
HostTransfers host_transfers(const PlanInputs& in, const RankWeights& weights, double layers) {
  const TrainingSpec& training = in.on.training;
  const BytesPerSecond link = in.on.cluster.device.host_bandwidth;
  const double share = 1 / (layers * in.plan.chunks());
  const double own = sharded(weights.all, weights.experts, in.plan) * share;
  const double weight = training.stack.memory.fp32_shards ? storage_bytes(Precision::fp32)
                                                          : weight_bytes_per_parameter(training);
  const Bytes frozen(sharded(weights.frozen.value, weights.frozen_experts.value, in.plan) * share);
  HostTransfers transfers;
  transfers.fetch = (Bytes(own * weight) + frozen) * in.plan.offload.parameters / link;
  if (in.plan.offload.parameters_on_drives())  // read ahead of the link
    transfers.fetch = max(transfers.fetch, fetch_time(in, rank_drives(in, weights)) * share);
  if (training.stack.memory.gradient_offload) {
    transfers.store =
        Bytes(own * gradient_bytes_per_parameter(training)) * in.plan.offload.optimizer / link;
  }
  return transfers;
}

// Sharded weights overlap by their nature unless a scenario switches off what its stack overlaps.
bool hides(const TrainingSpec& training, bool Overlap::*key) {
  const bool off = training.stack.overlap.*key && !(training.overlap.*key);
  return !training.overlap.nothing_hidden && !off;
}
bool gathers_ahead(const TrainingSpec& training) {
  return training.stack.zero.prefetch && hides(training, &Overlap::overlap_param_gather);
}
bool reduces_early(const TrainingSpec& training) {
  return (training.stack.zero.prefetch || training.overlap.overlap_grad_reduce) &&
         hides(training, &Overlap::overlap_grad_reduce);
}

// ZeRO-3 gathers each layer's parameters for forward and again for backward, and scatters its
// gradients; ZeRO-2 scatters gradients after every micro-batch (Rajbhandari et al. 2020, section
// 7), and FSDP's gathers for forward too.
void add_zero(const PlanInputs& in, const RankWeights& weights, const ClusterSpec& network,
              StageRow& row) {
  const TrainingSpec& training = in.on.training;
  const double parts =
      training.stack.zero.by_module ? std::max(1, in.layers.kinds.front().again->products) : 1;
  // Evenly over the layers of the stage: a gather overlaps with the layer before it.
  const double layers = std::max(1, row.layers.layers());
  const double experts = weights.experts / in.plan.chunks() / layers;
  const double others = weights.all / in.plan.chunks() / layers - experts;
  const auto sharded = [&](CollectiveKind kind, Bytes part, Bytes of_experts) {
    return parts * collective_time(kind, part, in.replicas, network) +
           collective_time(kind, of_experts, in.expert_replicas, network);
  };
  Seconds gather;
  if (gathers_in_forward(in.plan, training)) {
    const double share = layers * in.plan.chunks(), bytes = gather_bytes_per_parameter(training);
    const Bytes frozen_experts = weights.frozen_experts / share,
                frozen = weights.frozen / share - frozen_experts;
    gather = sharded(CollectiveKind::all_gather, Bytes(others / parts * bytes) + frozen / parts,
                     Bytes(experts * bytes) + frozen_experts);
  }
  const double gradient = gradient_bytes_per_parameter(training);
  Seconds scatter = sharded(CollectiveKind::reduce_scatter, Bytes(others / parts * gradient),
                            Bytes(experts * gradient));
  Seconds again = in.plan.zero == 3 ? gather : Seconds();  // for backward
  if (in.plan.zero_plus_plus.any()) {
    const ShardedPasses passes = zero_plus_plus(in, others, parts, network);
    gather = passes.forward;
    again = passes.backward;
    scatter = passes.reduction;
  }
  const double beside = training.stack.zero.slowdown;
  const bool prefetch = gathers_ahead(training), overlap = reduces_early(training);
  Seconds first = gather;  // the first layer's gather has nothing before it
  if (in.plan.offload.states()) {
    // Where they overlap, the slower of the host's link and the network sets the pace.
    const HostTransfers host = host_transfers(in, weights, layers);
    first += host.fetch;
    gather = prefetch ? max(gather, host.fetch) : gather + host.fetch;
    again = prefetch ? max(again, host.fetch) : again + host.fetch;
    scatter = overlap ? max(scatter, host.store) : scatter + host.store;
  }
  const auto forward_of = [&](Seconds pass) {
    return prefetch ? first + (layers - 1) * exposed_beside(gather, pass / layers, beside)
                    : layers * gather;
  };
  const auto backward_of = [&](Seconds pass) {
    return overlap ? scatter + layers * exposed_beside(again + scatter, pass / layers, beside)
                   : layers * (again + scatter);
  };
  const Seconds forward = row.forward.time(), backward = row.backward.time() + row.recompute.time();
  const Seconds waited = row.backward.waited + row.recompute.waited;
  row.zero_forward = forward_of(forward);
  row.zero_backward = backward_of(backward);
  row.gathers_in_waits_forward = forward_of(forward - row.forward.waited) - row.zero_forward;
  row.gathers_in_waits_backward = backward_of(backward - waited) - row.zero_backward;
  if (in.groups == nullptr) return;
  row.zero_sent_forward = layers * gather;
  row.zero_sent_backward = layers * (again + scatter);
}

}  // namespace

std::vector<StageRow> stage_rows(const PlanInputs& in, std::span<const RankParameters> weights,
                                 std::vector<StageRow> rows) {
  rows.clear();
  const Pace pace = pace_of(in);
  for (std::size_t i = 0; i < in.alike->rows.size(); ++i) {
    const AlikeStages::Row& row = in.alike->rows[i];
    if (row.layers < i) {
      rows.push_back(rows[row.layers]);
    } else {
      price(in, row.stage, pace, rows.emplace_back());
    }
  }
  std::optional<ClusterSpec> narrow;
  if (in.on.training.stack.zero.one_port && in.plan.zero == 3) narrow = one_port(in.on.cluster);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (in.plan.zero >= 2)
      add_zero(in, weights[in.alike->rows[i].kind], narrow ? *narrow : in.on.cluster, rows[i]);
    queue_launches(in, rows[i]);
  }
  return rows;
}

Bytes passed_on(const ParallelPlan& plan, std::int64_t tokens, const Workload& on) {
  const std::int64_t rows = plan.micro_batch * tokens / plan.cp;
  return Bytes(static_cast<double>(rows) * static_cast<double>(on.model.hidden) *
               storage_bytes(on.training.precision));
}

// bsh elements, split over the tensor ranks by sequence parallelism or by Megatron's scatter/gather
// (arXiv:2104.04473, section 4.1).
StageTransfer transfer_of(const ParallelPlan& plan, std::int64_t tokens, const Workload& on) {
  const Mesh mesh(plan);
  const Bytes whole = passed_on(plan, tokens, on);
  const StackSpec& stack = on.training.stack;
  const bool split = plan.sequence_parallel || (stack.collectives.scatter_gather && plan.tp > 1);
  StageTransfer transfer;
  transfer.sent = whole / (split ? plan.tp : 1);
  const std::size_t tier = tier_between(plan.pp, mesh.stride(Axis::pipeline), on.cluster);
  // The ranks of one stage send concurrently; a stage narrower than a node leaves the node over
  // fewer devices.
  transfer.time = transfer_time(transfer.sent, tier, mesh.stride(Axis::pipeline), on.cluster) +
                  stack.host.collective_wait;
  if (split && !plan.sequence_parallel) {  // the receiver gathers the pieces over its tensor group
    transfer.time += collective_time(CollectiveKind::all_gather, whole,
                                     mesh.layout(Axis::tensor, on.cluster), on.cluster);
    transfer.gathered = collective_bytes(CollectiveKind::all_gather, whole, plan.tp);
  }
  return transfer;
}

// The stages of an encoder-decoder model pass on what later stages need.
Transfers transfers_of(const PlanInputs& in) {
  Transfers all;
  if (in.plan.pp == 1) return all;
  if (!in.on.model.encoder_decoder()) {
    all.longest = transfer_of(in.plan, in.on.training.sequence, in.on);
    return all;
  }
  for (std::size_t k = 1; k < in.mixes().size(); ++k) {
    const StageTransfer one =
        transfer_of(in.plan, tokens_into(in.mixes()[k], in.on.training), in.on);
    all.boundaries.push_back({one, one});
    all.longest.time = max(all.longest.time, one.time);
    all.longest.sent = max(all.longest.sent, one.sent);
  }
  return all;
}

namespace {

// A forward of stage k and an unsplit backward of its rank's other one, together: each hides its
// exchange of tokens with experts behind the other's computation, as the overlapped exchange of
// 1F1B does (hide_expert_exchange), and all else is done in turn.
Seconds together_time(const PlanInputs& in, std::span<const StageRow> rows, std::size_t k,
                      const PipelineTimes& times) {
  const std::vector<std::size_t>& row_of = *in.alike->row_of;
  const std::size_t other = row_of.size() - 1 - k;
  const Seconds apart = times.forward[k] + times.backward[other] + times.weight_gradient[other];
  if (in.on.model.experts == 0 || in.on.training.overlap.nothing_hidden) return apart;
  const StageRow &ahead = rows[row_of[k]], &behind = rows[row_of[other]];
  const Seconds sent = ahead.forward.ep_comm, returned = behind.backward.ep_comm;
  const Seconds forward = ahead.forward.time() - sent, backward = behind.backward.time() - returned;
  const double slowdown = exchange_slowdown(in);
  const Seconds hidden = sent - exposed_beside(sent, backward, slowdown) + returned -
                         exposed_beside(returned, forward, slowdown);
  const TrainingSpec& training = in.on.training;
  return apart - (training.overlap.cuda_graph ? 1 : training.stack.experts.eager_overlap) * hidden;
}

}  // namespace

PipelineTimes stage_times(const PlanInputs& in, std::span<const StageRow> rows,
                          const Transfers& transfers, const Offload& offload, PipelineTimes times) {
  times.transfer = transfers.longest.time;
  times.blocking = !in.on.training.overlap.pp_overlap;
  times.forward_transfer.clear();
  times.backward_transfer.clear();
  for (const StageBoundary& boundary : transfers.boundaries) {
    times.forward_transfer.push_back(boundary.forward.time);
    times.backward_transfer.push_back(boundary.backward.time);
  }
  const std::vector<std::size_t>& row_of = *in.alike->row_of;
  const Seconds host = in.on.training.stack.host.micro_batch / 2;
  const bool split = splits_backward(in.plan.schedule);
  times.forward.resize(row_of.size());
  times.backward.resize(row_of.size());
  times.weight_gradient.resize(split ? row_of.size() : 0);
  for (std::size_t k = 0; k < row_of.size(); ++k) {
    const std::size_t alike = in.alike->rows[row_of[k]].stage;
    if (alike < k) {
      times.forward[k] = times.forward[alike];
      times.backward[k] = times.backward[alike];
      if (split) times.weight_gradient[k] = times.weight_gradient[alike];
      continue;
    }
    const StageRow& row = rows[row_of[k]];
    times.forward[k] = row.forward.time() + row.zero_forward + row.longest_forward + host;
    times.backward[k] = row.backward.time() + row.recompute.time() + row.zero_backward +
                        row.longest_backward + host;
    if (!split) continue;
    times.weight_gradient[k] = row.weight_gradient.time();
    times.backward[k] -= times.weight_gradient[k];
  }
  times.together.clear();
  for (std::size_t k = 0; overlaps(in.plan.schedule) && k < row_of.size(); ++k)
    times.together.push_back(together_time(in, rows, k, times));
  if (!offload.every_stage) {
    times.forward.front() += offload.forward;
    times.backward.front() += offload.backward;
  } else if (offload.exposed().value > 0) {
    const SentModules sent(in);
    for (std::size_t k = 0; k < row_of.size(); ++k) {
      const Offload own = sent.exposed(k);
      times.forward[k] += own.forward;
      times.backward[k] += own.backward;
    }
  }
  return times;
}

double shared_table(const PlanInputs& in, std::size_t k) {
  const bool shared = k == 0 && k == in.last_stage() && in.on.model.tie_embeddings &&
                      !in.on.training.fine_tuning.adapts();
  return shared ? vocabulary_table(in.on.model, in.plan.tp) : 0;
}

}  // namespace costmodel
