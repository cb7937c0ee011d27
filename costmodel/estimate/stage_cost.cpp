#include "costmodel/estimate/evaluator.hpp"

// The stage-cost table: layers summed to virtual stages, ZeRO's communication within a micro-batch,
// and pipeline transfers.
#include <algorithm>
#include <optional>
#include <utility>

#include "costmodel/base/error.hpp"
#include "costmodel/cost/collective.hpp"
#include "costmodel/estimate/layer_mix.hpp"
#include "costmodel/plan/mesh.hpp"
#include "costmodel/schedule/closed_form.hpp"

namespace costmodel {

// Layers are numbered consecutively through the virtual stages; the first ones of each stage are
// recomputed.
void Evaluator::place_layers(const ParallelPlan& plan) {
  const int stages = plan.virtual_stages();
  cost_.layers.resize(static_cast<std::size_t>(stages));
  std::int64_t first = 0;
  for (int k = 0; k < stages; ++k) {
    const int layers = layers_of(plan, model_, k);
    cost_.layers[static_cast<std::size_t>(k)] = layer_mix(model_, first, layers, plan.recompute);
    first += layers;
  }
}

void Evaluator::price_stages(const ParallelPlan& plan) {
  const LayerCost& embedding = layer(LayerKind::embedding, plan, Recomputed::nothing);
  const LayerCost& head = layer(LayerKind::head, plan, Recomputed::nothing);
  const int stages = plan.virtual_stages();
  const auto n = static_cast<std::size_t>(stages);
  PlanCost& c = cost_;
  c.forward.assign(n, {});
  c.backward.assign(n, {});
  c.recompute.assign(n, {});
  c.weights.assign(static_cast<std::size_t>(plan.pp), 0);
  c.expert_weights.assign(static_cast<std::size_t>(plan.pp), 0);
  c.partial_weights.assign(static_cast<std::size_t>(plan.pp), 0);
  const bool split = splits_backward(plan.schedule);
  c.weight_gradient.assign(split ? n : 0, {});
  const auto add = [&](std::size_t k, const LayerCost& layer, double times) {
    c.forward[k] += layer.forward * times;
    if (split) {
      c.backward[k] += (layer.input_gradient + layer.weight_gradient) * times;
      c.weight_gradient[k] += layer.weight_gradient * times;
    } else {
      c.backward[k] += layer.backward * times;
    }
    c.recompute[k] += layer.recompute * times;
  };
  const auto add_blocks = [&](LayerKind kind, int LayerMix::*number, int LayerMix::*recomputed) {
    const LayerCost& again = layer(kind, plan, region_of(plan.recompute));
    const LayerCost& kept =
        plan.recompute.layers > 0 ? layer(kind, plan, Recomputed::nothing) : again;
    for (std::size_t k = 0; k < n; ++k) {
      const int layers = c.layers[k].*number, repeated = c.layers[k].*recomputed;
      if (repeated > 0) add(k, again, repeated);
      if (layers > repeated) add(k, kept, layers - repeated);
      const auto rank =
          static_cast<std::size_t>(rank_of(plan.schedule, plan.pp, static_cast<int>(k)));
      c.weights[rank] += layers * again.weights;
      c.expert_weights[rank] += layers * again.expert_weights;
      c.partial_weights[rank] += layers * again.partial_weights;
    }
  };
  for (const LayerGroup& group : layer_groups(model_))
    add_blocks(group.kind, group.number, group.again);
  for (std::size_t k = 0; k < n; ++k) {
    if (c.layers[k].decoder_starts) add_decoder_start(plan, k);
  }
  add(0, embedding, 1);
  add(n - 1, head, 1);
  const auto last = static_cast<std::size_t>(rank_of(plan.schedule, plan.pp, stages - 1));
  c.weights.front() += embedding.weights;
  c.weights[last] += head.weights;
  c.partial_weights.front() += embedding.partial_weights;
  c.partial_weights[last] += head.partial_weights;
  if (model_.mtp_layers > 0) add_mtp(plan, last);
  const bool tied_here = model_.tie_embeddings && last == 0;  // one table serves both ends
  if (tied_here) c.weights.front() -= vocabulary_table(model_, plan.tp);
}

// Adds the layers of multi-token prediction to the last stage: each with its start, a layer and the
// head again. Their copy of the token table stays with the last rank, unless it has the first one.
void Evaluator::add_mtp(const ParallelPlan& plan, std::size_t rank) {
  PlanCost& c = cost_;
  const auto more = static_cast<double>(model_.mtp_layers);
  const LayerCost& start = layer(LayerKind::mtp_start, plan, Recomputed::nothing);
  const LayerCost& own = layer(mtp_layer(model_), plan, region_of(plan.recompute));
  const LayerCost& head = layer(LayerKind::head, plan, Recomputed::nothing);
  const double table = vocabulary_table(model_, plan.tp);
  for (const LayerCost* part : {&start, &own, &head}) {
    c.forward.back() += part->forward * more;
    c.backward.back() += part->backward * more;
    if (!c.weight_gradient.empty()) c.weight_gradient.back() += part->weight_gradient * more;
    c.recompute.back() += part->recompute * more;
  }
  c.weights[rank] += (own.weights + start.weights - table) * more + (rank > 0 ? table : 0);
  c.expert_weights[rank] += own.expert_weights * more;
  c.partial_weights[rank] += (own.partial_weights + start.partial_weights) * more;
}

// Adds the encoder's final norm and the decoder's embedding; the stage may already have their
// tables.
void Evaluator::add_decoder_start(const ParallelPlan& plan, std::size_t k) {
  PlanCost& c = cost_;
  const LayerCost& start = layer(LayerKind::decoder_embedding, plan, Recomputed::nothing);
  c.forward[k] += start.forward;
  c.backward[k] += start.backward;
  c.weights[k] += start.weights;
  c.partial_weights[k] += start.partial_weights;
  const double table = vocabulary_table(model_, plan.tp), all = shared_tables(model_, plan.tp);
  if (k == 0) {
    c.weights[k] -= all;
    if (plan.sequence_parallel) c.partial_weights[k] -= all - table;
  } else if (k + 1 == c.forward.size() && model_.tie_embeddings) {
    c.weights[k] -= table;
  }
}

// The exchange of a micro-batch beside the computation of another one: a pair of a forward and a
// backward takes max(exchange of one, computation of the other), twice, in place of the sums. The
// warm-up's share has no other micro-batch beside it. Without a graph of the iteration the host
// launches both, and only a part is hidden.
void Evaluator::hide_expert_exchange(const ParallelPlan& plan) {
  if (!plan.experts.overlap || model_.experts == 0) return;
  PlanCost& c = cost_;
  const double p = plan.pp, v = plan.vpp;
  const double alone =
      std::min(1.0, ((p - 1) * 2 + (v - 1) * p + 1) / (static_cast<double>(c.micro_batches) * v));
  const double all = cluster_.device.multiprocessors, taken = plan.experts.multiprocessors;
  const double slowdown = taken > 0 && taken < all ? all / (all - taken) : overlap_slowdown;
  const double hidden =
      (1 - alone) * (training_.overlap.cuda_graph ? 1 : training_.stack.eager_expert_overlap);
  const auto hide = [&](Seconds& exchange, Seconds window) {
    exchange += hidden * (exposed_beside(exchange, window, slowdown) - exchange);
  };
  for (std::size_t k = 0; k < c.forward.size(); ++k) {
    const Seconds ahead = c.forward[k].time() - c.forward[k].ep_comm;
    const Seconds behind = c.backward[k].time() - c.backward[k].ep_comm;
    hide(c.forward[k].ep_comm, behind);
    hide(c.backward[k].ep_comm, ahead);
  }
}

// The fraction of time that ranks idle in the pipeline's bubble, for equal stages.
double Evaluator::idle_share(const ParallelPlan& plan) const {
  // Of a schedule from a file no formula is known: as 1F1B, or interleaved.
  const auto kind = is_listed(plan.schedule) ? usual_schedule(plan.vpp) : plan.schedule;
  const double bubble = bubble_fraction(kind, plan.pp + between_, plan.vpp, cost_.micro_batches);
  return bubble / (1 + bubble);
}

std::int64_t Evaluator::ranks_on_a_node() const {
  return std::min(cluster_.devices, cluster_.devices_per_node);
}

// The expected number of ranks on a node that compute concurrently while one does; the others may
// idle in the pipeline's bubble.
double Evaluator::computing_together(const ParallelPlan& plan) const {
  const std::int64_t ranks = ranks_on_a_node();
  return 1 + (static_cast<double>(ranks) - 1) * (1 - idle_share(plan));
}

void Evaluator::share_node(const ParallelPlan& plan) {
  if (cluster_.device.together.empty()) return;
  const double factor = slowdown_together(cluster_.device, computing_together(plan));
  for (auto* costs : {&cost_.forward, &cost_.backward, &cost_.recompute, &cost_.weight_gradient})
    for (Cost& cost : *costs) cost.compute *= factor;
}

// A power-limited device that idles in the pipeline's bubble computes faster in the rest of the
// time, unless kernel launches are the bottleneck.
void Evaluator::raise_clocks(const ParallelPlan& plan) {
  if (plan.pp == 1 || cluster_.device.idle_boost == 0) return;
  const double factor = 1 - cluster_.device.idle_boost * idle_share(plan);
  for (auto* costs : {&cost_.forward, &cost_.backward, &cost_.recompute, &cost_.weight_gradient}) {
    for (Cost& cost : *costs) {
      const Seconds communication = cost.time() - cost.compute;
      const Seconds host = max(Seconds(0), cost.kernels * kernel_launch() - communication);
      cost.compute = max(cost.compute * factor, min(cost.compute, host));
    }
  }
}

namespace {

// The same cluster where a node has the port of one device instead of one port per device.
ClusterSpec one_port(ClusterSpec cluster) {
  const auto ports = static_cast<double>(cluster.tiers.front().devices);
  for (std::size_t i = 1; i < cluster.tiers.size(); ++i)
    cluster.tiers[i].bandwidth = cluster.tiers[i].bandwidth / ports;
  return cluster;
}

}  // namespace

// ZeRO-3 gathers each layer's parameters for forward and again for backward, and scatters its
// gradients; ZeRO-2 scatters gradients after every micro-batch (Rajbhandari et al. 2020, section
// 7).
void Evaluator::price_zero(const ParallelPlan& plan) {
  PlanCost& c = cost_;
  const std::size_t n = c.forward.size();
  c.zero_forward.assign(n, Seconds(0));
  c.zero_backward.assign(n, Seconds(0));
  if (plan.zero < 2) return;
  const GroupLayout group = Mesh(plan).replica_layout(cluster_);
  const GroupLayout expert_group =
      model_.experts > 0 ? expert_mesh(plan).replica_layout(cluster_) : group;
  std::optional<ClusterSpec> narrow;
  if (training_.stack.zero_one_port && plan.zero == 3) narrow = one_port(cluster_);
  const ClusterSpec& network = narrow ? *narrow : cluster_;
  const bool gathers = plan.zero == 3;
  const LayerKind kind_of_all = layer_groups(model_).front().kind;
  const double parts =
      training_.stack.zero_by_module
          ? std::max(1, layer(kind_of_all, plan, region_of(plan.recompute)).products)
          : 1;
  for (std::size_t k = 0; k < n; ++k) {
    // Evenly over the layers of the stage: a gather overlaps with the layer before it.
    const double layers = std::max(1, c.layers[k].layers());
    const auto rank =
        static_cast<std::size_t>(rank_of(plan.schedule, plan.pp, static_cast<int>(k)));
    const double experts = c.expert_weights[rank] / plan.vpp / layers;
    const double weights = c.weights[rank] / plan.vpp / layers - experts;
    const auto sharded = [&](CollectiveKind kind, double bytes_per_parameter) {
      return parts * collective_time(kind, Bytes(weights / parts * bytes_per_parameter), group,
                                     network) +
             collective_time(kind, Bytes(experts * bytes_per_parameter), expert_group, network);
    };
    const Seconds gather =
        gathers ? sharded(CollectiveKind::all_gather, gather_bytes_per_parameter(training_))
                : Seconds(0);
    const Seconds scatter =
        sharded(CollectiveKind::reduce_scatter, gradient_bytes_per_parameter(training_));
    const Seconds forward = c.forward[k].time() / layers;
    const Seconds backward = (c.backward[k].time() + c.recompute[k].time()) / layers;
    const bool prefetch = training_.stack.zero_prefetch;
    const double beside = training_.stack.zero_slowdown;
    const bool overlap = training_.overlap.overlap_grad_reduce || prefetch;
    const Seconds first = gather;  // the first layer's gather has nothing before it
    c.zero_forward[k] =
        prefetch ? first + (layers - 1) * exposed_beside(gather, forward, beside) : layers * gather;
    c.zero_backward[k] = overlap
                             ? scatter + layers * exposed_beside(gather + scatter, backward, beside)
                             : layers * (gather + scatter);
  }
}

// Bytes of the hidden states of `tokens` tokens of every sequence of a micro-batch.
Bytes Evaluator::passed(const ParallelPlan& plan, std::int64_t tokens) const {
  const std::int64_t rows = plan.micro_batch * tokens / plan.cp;
  return Bytes(static_cast<double>(rows) * static_cast<double>(model_.hidden) *
               storage_bytes(training_.precision));
}

// Transfer of a micro-batch's activations (and in backward their gradients) to the next stage: bsh
// elements, split over the tensor ranks by sequence parallelism or by Megatron's scatter/gather
// (arXiv:2104.04473, section 4.1).
StageTransfer Evaluator::transfer_of(const ParallelPlan& plan, std::int64_t tokens) const {
  const Mesh mesh(plan);
  const Bytes whole = passed(plan, tokens);
  const bool split = plan.sequence_parallel || (training_.stack.scatter_gather && plan.tp > 1);
  StageTransfer transfer;
  transfer.sent = whole / (split ? plan.tp : 1);
  const std::size_t tier = tier_between(plan.pp, mesh.stride(Axis::pipeline), cluster_);
  // The ranks of one stage send concurrently; a stage narrower than a node leaves the node over
  // fewer devices.
  transfer.time = transfer_time(transfer.sent, tier, mesh.stride(Axis::pipeline), cluster_) +
                  training_.stack.collective_wait;
  if (split && !plan.sequence_parallel) {  // the receiver gathers the pieces over its tensor group
    transfer.time += collective_time(CollectiveKind::all_gather, whole,
                                     mesh.layout(Axis::tensor, cluster_), cluster_);
    transfer.gathered = collective_bytes(CollectiveKind::all_gather, whole, plan.tp);
  }
  return transfer;
}

// The stages of an encoder-decoder model pass on what later stages need.
void Evaluator::price_transfer(const ParallelPlan& plan) {
  PlanCost& c = cost_;
  c.transfer_bytes = Bytes(0);
  c.times.transfer = Seconds(0);
  c.times.blocking = !training_.overlap.pp_overlap;
  if (plan.pp == 1) return;
  if (!model_.encoder_decoder()) {
    const StageTransfer all = transfer_of(plan, training_.sequence);
    c.transfer_bytes = all.sent;
    c.times.transfer = all.time;
    return;
  }
  for (std::size_t k = 1; k < c.layers.size(); ++k) {
    const StageTransfer one = transfer_of(plan, tokens_into(c.layers[k], training_));
    c.boundaries.push_back({one, one});
    c.times.forward_transfer.push_back(one.time);
    c.times.backward_transfer.push_back(one.time);
    c.times.transfer = max(c.times.transfer, one.time);
    c.transfer_bytes = max(c.transfer_bytes, one.sent);
  }
}

// The plan as the framework runs it. torchtitan's selective recomputation repeats every second
// layer; in a pipeline FSDP2 neither reshards after forward nor reduces before the last micro-batch
// (torchtitan, parallelize_llama.py: reshard_after_forward; torch.distributed.pipelining, stage.py:
// set_requires_gradient_sync), which is ZeRO-1 in memory and traffic.
ParallelPlan Evaluator::as_run(const ParallelPlan& requested) const {
  ParallelPlan plan = requested;
  plan.recompute = recompute_as_run(requested.recompute, training_.stack);
  if (training_.stack.whole_in_pipeline && plan.pp > 1) plan.zero = std::min(plan.zero, 1);
  return plan;
}

const PlanCost& Evaluator::cost(const ParallelPlan& requested) {
  SHARDPLAN_CHECK(requested.replica_groups.empty());
  if (by_stage(requested, cluster_)) return cost_by_stage(requested);
  const bool otherwise =
      recompute_as_run(requested.recompute, training_.stack) != requested.recompute;
  const bool whole = training_.stack.whole_in_pipeline && requested.pp > 1 && requested.zero > 1;
  const ParallelPlan& plan = otherwise || whole ? (as_run_ = as_run(requested)) : requested;
  place_layers(plan);
  return price(plan);
}

const PlanCost& Evaluator::cost(const ParallelPlan& requested,
                                const std::vector<LayerMix>& stages) {
  SHARDPLAN_CHECK(stages.size() == static_cast<std::size_t>(requested.virtual_stages()));
  as_run_ = as_run(requested);
  cost_.layers = stages;
  return price(as_run_);
}

const PlanCost& Evaluator::cost_of_ends(const ParallelPlan& requested,
                                        const std::vector<LayerMix>& stages) {
  const auto priced = static_cast<int>(stages.size());
  SHARDPLAN_CHECK(requested.vpp == 1 && priced <= requested.pp &&
                  (priced > 1 || priced == requested.pp));
  as_run_ = as_run(requested);
  as_run_.pp = priced;
  between_ = requested.pp - priced;
  cost_.layers = stages;
  const PlanCost& cost = price(as_run_);
  between_ = 0;
  return cost;
}

const PlanCost& Evaluator::price(const ParallelPlan& plan) {
  PlanCost& c = cost_;
  c.micro_batches = plan.micro_batches(training_.global_batch);
  SHARDPLAN_CHECK(c.micro_batches >= 1);
  c.times.forward_transfer.clear();  // what stages that differ have had
  c.times.backward_transfer.clear();
  c.boundaries.clear();
  c.capacity.clear();
  c.fullest = 0;
  price_stages(plan);
  share_node(plan);
  hide_expert_exchange(plan);
  raise_clocks(plan);
  price_zero(plan);
  const std::size_t n = c.forward.size();
  c.times.forward.resize(n);
  c.times.backward.resize(n);
  for (std::size_t k = 0; k < n; ++k) {
    const Seconds host = training_.stack.micro_batch_host / 2;
    c.times.forward[k] = c.forward[k].time() + c.zero_forward[k] + host;
    c.times.backward[k] = c.backward[k].time() + c.recompute[k].time() + c.zero_backward[k] + host;
  }
  c.times.weight_gradient.resize(c.weight_gradient.size());
  for (std::size_t k = 0; k < c.weight_gradient.size(); ++k) {
    c.times.weight_gradient[k] = c.weight_gradient[k].time();
    c.times.backward[k] -= c.times.weight_gradient[k];
  }
  price_transfer(plan);
  price_data_parallel(plan);
  price_embedding(plan);
  price_memory(plan);
  price_offload(plan);
  if (c.boundaries.empty()) {
    bound(plan);
  } else {
    bound_by_stage(plan);
  }
  return c;
}

}  // namespace costmodel
