#include "costmodel/estimate/evaluator.hpp"

// Memory of each pipeline rank in the steady state.
#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <vector>

#include "costmodel/estimate/layer_mix.hpp"

namespace costmodel {

namespace {

// The schedule from which the mixes of chunks in flight are counted. They repeat with every p
// micro-batches, so 4·p micro-batches suffice.
Schedule shown_schedule(const ParallelPlan& plan, std::int64_t m) {
  const std::int64_t shown =
      m == plan.pp ? m : std::min<std::int64_t>(m, std::int64_t{4} * plan.pp);
  return generate(plan.schedule, plan.pp, plan.vpp, static_cast<int>(shown));
}

}  // namespace

// Micro-batches in flight of a generated schedule, cached by (p, v, m).
template <class Held, class Find>
const Held& Evaluator::held_once(std::map<ScheduleKey, Held>& cache, const ParallelPlan& plan,
                                 Find find) {
  const std::int64_t m = cost_.micro_batches;
  const ScheduleKey key{2 * static_cast<std::int64_t>(plan.schedule) + (m == plan.pp ? 1 : 0),
                        plan.pp, plan.vpp, std::min<std::int64_t>(m, std::int64_t{4} * plan.pp)};
  const auto found = cache.find(key);
  if (found != cache.end()) return found->second;
  return cache.emplace(key, find(shown_schedule(plan, m))).first->second;
}

// The plan's layers by kind: `again` is a recomputed one, `whole` one that keeps everything.
struct Evaluator::Layers {
  struct Kind {
    const LayerGroup* group = nullptr;
    const LayerCost* again = nullptr;
    const LayerCost* whole = nullptr;
    int number(const LayerMix& mix) const { return mix.*group->number; }
    int repeated(const LayerMix& mix) const { return mix.*group->again; }
  };
  std::array<Kind, most_layer_groups> kinds;  // as layer_groups has them
  std::size_t count = 0;
  const LayerCost& embedding;
  const LayerCost& head;
  const LayerCost* decoder_embedding = nullptr;
  const LayerCost* mtp_start = nullptr;  // of multi-token prediction, and its layer
  const LayerCost* mtp_layer = nullptr;
  Bytes encoder_output;  // that a stage with decoder layers holds of a micro-batch
  std::span<const Kind> all() const { return std::span(kinds).first(count); }
};

Evaluator::Layers Evaluator::layers_for(const ParallelPlan& plan) {
  const auto region = region_of(plan.recompute);
  Layers f{.kinds = {},
           .embedding = layer(LayerKind::embedding, plan, Recomputed::nothing),
           .head = layer(LayerKind::head, plan, Recomputed::nothing)};
  for (const LayerGroup& group : layer_groups(model_)) {
    const LayerCost& again = layer(group.kind, plan, region);
    const LayerCost& whole =
        plan.recompute.layers > 0 ? layer(group.kind, plan, Recomputed::nothing) : again;
    f.kinds[f.count++] = {&group, &again, &whole};
  }
  if (model_.mtp_layers > 0) {
    f.mtp_start = &layer(LayerKind::mtp_start, plan, Recomputed::nothing);
    f.mtp_layer = &layer(costmodel::mtp_layer(model_), plan, region);
  }
  if (!model_.encoder_decoder()) return f;
  f.decoder_embedding = &layer(LayerKind::decoder_embedding, plan, Recomputed::nothing);
  f.encoder_output = passed(plan, training_.sequence) / (plan.sequence_parallel ? plan.tp : 1);
  return f;
}

// Kept by one micro-batch on virtual stage k.
Bytes Evaluator::kept_by(const Layers& f, const ParallelPlan& plan, int k) const {
  const LayerMix& mix = cost_.layers[static_cast<std::size_t>(k)];
  Bytes kept;
  for (const Layers::Kind& kind : f.all()) {
    const int repeated = kind.repeated(mix);
    kept += kind.again->footprint.kept * repeated +
            kind.whole->footprint.kept * (kind.number(mix) - repeated);
  }
  if (mix.decoder > 0) kept += f.encoder_output;
  if (mix.decoder_starts) kept += f.decoder_embedding->footprint.kept;
  if (k == 0) kept += f.embedding.footprint.kept;
  if (k == plan.virtual_stages() - 1) {
    const auto heads = static_cast<double>(1 + model_.mtp_layers);
    kept += f.head.footprint.kept * heads;
    if (f.mtp_start != nullptr)
      kept += (f.mtp_start->footprint.kept + f.mtp_layer->footprint.kept) * (heads - 1);
  }
  return kept;
}

// Kept by one micro-batch on virtual stage k between its input and its weight gradient.
Bytes Evaluator::pending_by(const Layers& f, const ParallelPlan& plan, int k) const {
  const LayerMix& mix = cost_.layers[static_cast<std::size_t>(k)];
  Bytes kept;
  for (const Layers::Kind& kind : f.all())
    kept += kind.whole->footprint.kept_for_weights * kind.number(mix);
  if (k == 0) kept += f.embedding.footprint.kept_for_weights;
  if (k == plan.virtual_stages() - 1) kept += f.head.footprint.kept_for_weights;
  return kept;
}

// Kept by one micro-batch from forward to backward, on all chunks of a rank.
Bytes Evaluator::micro_batch_on(const Layers& f, const ParallelPlan& plan, int rank) const {
  Bytes kept;
  for (int v = 0; v < plan.vpp; ++v)
    kept += kept_by(f, plan, stage_of(plan.schedule, plan.pp, v, rank));
  return kept;
}

// The most that a schedule with split backward may hold, forwards and pending weight gradients
// together: the limit for which it is generated, unless its forwards alone hold more or there are
// too few micro-batches to reach it. Ranks in the middle may stay below. After a backward its own
// weight gradient is pending at least for a moment.
Bytes Evaluator::held_split(const Layers& f, const ParallelPlan& plan, int rank) {
  const auto m = static_cast<double>(cost_.micro_batches);
  const double limit = row_of(plan.schedule).held_limit(plan.pp);
  const Bytes kept = micro_batch_on(f, plan, rank);
  Bytes longest, extra;
  for (int v = 0; v < plan.vpp; ++v) {
    const int k = stage_of(plan.schedule, plan.pp, v, rank);
    longest += max(kept_by(f, plan, k), pending_by(f, plan, k));
    extra = max(extra, pending_by(f, plan, k) - kept_by(f, plan, k));
  }
  Bytes forwards;  // what they hold alone: chunks that weigh differently may pass the limit
  if (plan.vpp > 1) {
    const Bytes down = kept_by(f, plan, rank);
    for (const EndMix& mix : held_once(end_mixes_, plan, end_mixes)[static_cast<std::size_t>(rank)])
      forwards = max(forwards, down * mix.first + (kept - down) * mix.last);
  }
  return min(max(forwards, kept * limit) + extra, longest * m);
}

// For chunks of any size: every maximal mix, weighted chunk by chunk.
Bytes Evaluator::held_by_uneven(const Layers& f, const ParallelPlan& plan, int rank,
                                double& in_flight) {
  Bytes most;
  const InFlight& all = held_once(in_flight_, plan, costmodel::in_flight);
  for (const auto& mix : all.peaks[static_cast<std::size_t>(rank)]) {
    Bytes held;
    double chunks = 0;
    for (int v = 0; v < plan.vpp; ++v) {
      const double count = mix[static_cast<std::size_t>(v)];
      held += kept_by(f, plan, v * plan.pp + rank) * count;
      chunks += count;
    }
    most = max(most, held);
    in_flight = std::max(in_flight, chunks / plan.vpp);
  }
  return most;
}

// The largest mix of chunks in flight on this rank, and its number of micro-batches.
Bytes Evaluator::held_by(const Layers& f, const ParallelPlan& plan, int rank, double& in_flight) {
  const Bytes held = held_in_turn(f, plan, rank, in_flight);
  if (!plan.experts.overlap || model_.experts == 0 || splits_backward(plan.schedule)) return held;
  // One more is under way: a pipeline begins a forward earlier (Megatron-LM,
  // core/pipeline_parallel/ schedules.py, get_pp_rank_microbatches). Without one, the forward of
  // the next takes up, layer by layer, what the backward beside it frees.
  if (plan.pp == 1) return held;
  Bytes chunk;
  for (int v = 0; v < plan.vpp; ++v) {
    const int k = stage_of(plan.schedule, plan.pp, v, rank);
    chunk = max(chunk, kept_by(f, plan, k));
  }
  const double more = std::min(1.0, static_cast<double>(cost_.micro_batches) - in_flight);
  if (more <= 0) return held;
  in_flight += more / plan.vpp;
  return held + chunk * more;
}

// What a schedule from a file holds at its fullest, action by action.
Bytes Evaluator::held_listed(const Layers& f, const ParallelPlan& plan, int rank) const {
  std::vector<Bytes> kept, pending;
  for (int v = 0; v < plan.vpp; ++v) {
    const int k = stage_of(plan.schedule, plan.pp, v, rank);
    kept.push_back(kept_by(f, plan, k));
    pending.push_back(splits_backward(plan.schedule) ? pending_by(f, plan, k) : Bytes(0));
  }
  Bytes held, most;
  for (const Action& action : plan.listed->schedule.actions[static_cast<std::size_t>(rank)]) {
    const auto v = static_cast<std::size_t>(action.stage / plan.pp);
    if (action.kind == ActionKind::forward) held += kept[v];
    if (action.kind == ActionKind::backward) held += pending[v] - kept[v];
    if (action.kind == ActionKind::weight_gradient) held += Bytes(0) - pending[v];
    most = max(most, held);
  }
  return most;
}

Bytes Evaluator::held_in_turn(const Layers& f, const ParallelPlan& plan, int rank,
                              double& in_flight) {
  if (splits_backward(plan.schedule) || plan.listed != nullptr) {
    const Bytes held =
        plan.listed != nullptr ? held_listed(f, plan, rank) : held_split(f, plan, rank);
    const Bytes one = micro_batch_on(f, plan, rank);
    in_flight = one > Bytes(0) ? held / one : 0;  // as many as would hold as much
    return held;
  }
  if (plan.vpp == 1) {
    const auto m = static_cast<double>(cost_.micro_batches);
    in_flight = std::min(
        m, row_of(plan.schedule).forwards_first(rank, {plan.pp, plan.vpp, m, {}, {}, {}, {}}));
    return kept_by(f, plan, rank) * in_flight;
  }
  if (!plan.stage_layers.empty() || model_.mixes_layers())
    return held_by_uneven(f, plan, rank, in_flight);
  const Bytes first = kept_by(f, plan, rank);
  const Bytes last = kept_by(f, plan, (plan.vpp - 1) * plan.pp + rank);
  const Bytes middle = plan.vpp > 2 ? kept_by(f, plan, plan.pp + rank) : first;
  Bytes most;
  for (const EndMix& mix : held_once(end_mixes_, plan, end_mixes)[static_cast<std::size_t>(rank)]) {
    most =
        max(most, middle * mix.total + (first - middle) * mix.first + (last - middle) * mix.last);
    in_flight = std::max(in_flight, static_cast<double>(mix.total) / plan.vpp);
  }
  return most;
}

// The largest working set of the layers of virtual stage k, above everything that is held when its
// last layer begins its backward: the layer's own, less what the layers after it had kept.
Bytes Evaluator::working_by(const Layers& f, const ParallelPlan& plan, int k) const {
  const LayerMix& mix = cost_.layers[static_cast<std::size_t>(k)];
  Bytes most, behind;
  const auto add = [&](const LayerCost& layer, int count) {
    if (count == 0) return;
    const Footprint& own = layer.footprint;
    most = max(most, max(own.forward_transient, own.backward_transient) - behind);
    behind += own.kept * count;
  };
  if (k == plan.virtual_stages() - 1) add(f.head, 1);
  for (std::size_t i = f.count; i-- > 0;)
    add(*f.kinds[i].whole, f.kinds[i].number(mix) - f.kinds[i].repeated(mix));
  for (std::size_t i = f.count; i-- > 0;) add(*f.kinds[i].again, f.kinds[i].repeated(mix));
  if (mix.decoder_starts) add(*f.decoder_embedding, 1);
  if (k == 0) add(f.embedding, 1);
  return most;
}

Bytes Evaluator::working_on(const Layers& f, const ParallelPlan& plan, int rank) const {
  const int last = plan.virtual_stages() - 1;
  if (rank_of(plan.schedule, plan.pp, last) == rank) return working_by(f, plan, last);
  Bytes most;
  for (int v = 0; v < plan.vpp; ++v)
    most = max(most, working_by(f, plan, stage_of(plan.schedule, plan.pp, v, rank)));
  return most;
}

// Buffers: transfers in both directions; for ZeRO-3 the layer being computed and the one being
// gathered; for ZeRO-2 and -3 one layer's unsharded gradient.
Bytes Evaluator::buffers_of(const ParallelPlan& plan, int rank, double largest_layer) const {
  Bytes buffers;
  if (plan.pp > 1 && model_.encoder_decoder()) {
    const LayerMix& mix = cost_.layers[static_cast<std::size_t>(rank)];
    const std::int64_t tokens = tokens_at_ends(mix, rank == 0, rank + 1 == plan.pp, training_);
    buffers += transfer_of(plan, tokens).sent * 2.0;
  } else if (plan.pp > 1) {
    buffers += cost_.transfer_bytes * (2.0 * plan.vpp);
  }
  const double gathered = plan.zero < 3 ? 0 : training_.stack.zero_prefetch ? 2 : 1;
  buffers += Bytes(gathered * largest_layer * weight_bytes_per_parameter(training_));
  if (plan.zero >= 2) buffers += Bytes(largest_layer * gradient_bytes_per_parameter(training_));
  return buffers;
}

void Evaluator::price_memory(const ParallelPlan& plan) {
  PlanCost& c = cost_;
  const Layers f = layers_for(plan);
  const auto gathered = [this](const LayerCost& layer) {
    return training_.stack.zero_by_module ? layer.largest_weights : layer.weights;
  };
  double block_weights = 0;
  for (const Layers::Kind& kind : f.all())
    block_weights = std::max(block_weights, gathered(*kind.again));
  const int last = rank_of(plan.schedule, plan.pp, plan.virtual_stages() - 1);
  c.memory.assign(static_cast<std::size_t>(plan.pp), {});
  c.shares.forward.assign(c.weight_gradient.size(), 0);
  c.shares.pending.assign(c.weight_gradient.size(), 0);
  for (std::size_t k = 0; k < c.weight_gradient.size(); ++k) {
    const int rank = rank_of(plan.schedule, plan.pp, static_cast<int>(k));
    const Bytes micro_batch = micro_batch_on(f, plan, rank);
    if (micro_batch.value <= 0) continue;
    c.shares.forward[k] = kept_by(f, plan, static_cast<int>(k)) / micro_batch;
    c.shares.pending[k] = pending_by(f, plan, static_cast<int>(k)) / micro_batch;
  }
  c.peak = Bytes(0);
  for (int r = 0; r < plan.pp; ++r) {
    StageMemory& s = c.memory[static_cast<std::size_t>(r)];
    const Bytes held = held_by(f, plan, r, s.in_flight_micro_batches);
    s.activations = held + working_on(f, plan, r);
    const double n = c.weights[static_cast<std::size_t>(r)];
    const bool fp32_shards = plan.zero == 3 && training_.stack.fp32_shards &&
                             training_.stack.master_weights &&
                             training_.precision != Precision::fp32;
    constexpr double fp32 = 4;
    const double weight = fp32_shards ? fp32 : weight_bytes_per_parameter(training_);
    const double states = optimizer_bytes_per_parameter(training_) - (fp32_shards ? fp32 : 0);
    const double part = sharded(n, c.expert_weights[static_cast<std::size_t>(r)], plan);
    const auto kept = [&](int stage) { return plan.zero >= stage ? part : n; };
    s.weights = Bytes(kept(3) * weight);
    const bool both = training_.stack.bf16_optimizer && training_.precision == Precision::bf16;
    const double narrow = both ? storage_bytes(training_.precision) : 0;
    const double gradients = training_.stack.whole_gradients ? n : kept(2);
    s.gradients = Bytes(gradients * (gradient_bytes_per_parameter(training_) + narrow));
    s.optimizer = Bytes(kept(1) * states);
    double largest_layer = block_weights;
    if (r == 0) largest_layer = std::max(largest_layer, gathered(f.embedding));
    if (c.layers[static_cast<std::size_t>(r)].decoder_starts)
      largest_layer = std::max(largest_layer, gathered(*f.decoder_embedding));
    if (r == last) largest_layer = std::max(largest_layer, gathered(f.head));
    s.buffers = buffers_of(plan, r, largest_layer);
    s.buffers += s.total() * training_.stack.fragmentation + training_.stack.context;
    if (plan.vpp == 1) s.each = kept_by(f, plan, r) * (1 + training_.stack.fragmentation);
    if (s.total() <= c.peak) continue;
    c.peak = s.total();
    c.fullest = static_cast<std::size_t>(r);
  }
}

// Activation offloading: what does not fit is sent to host memory in forward and fetched in
// backward, layer by layer, concurrently with the computation (Transformer Engine's
// get_cpu_offload_context; Megatron-LM's --cpu-offloading-num-layers, whose rules are applied
// here).
void Evaluator::price_offload(const ParallelPlan& plan) {
  PlanCost& c = cost_;
  c.offloaded_layers = 0;
  c.offload_exposed = Seconds(0);
  const BytesPerSecond link = cluster_.device.host_bandwidth;
  const bool allowed = training_.stack.activation_offload && plan.zero == 3 && plan.pp == 1 &&
                       plan.recompute.granularity == Recomputation::none && link.value > 0;
  if (!allowed || c.peak <= cluster_.device.memory || model_.layers < 2 || model_.mixes_layers())
    return;
  const LayerKind kind = model_.experts > 0 ? LayerKind::moe : LayerKind::block;
  const LayerCost& block = layer(kind, plan, Recomputed::nothing);
  const double reserved = 1 + training_.stack.fragmentation;
  const double needed = (c.peak - cluster_.device.memory) / (block.footprint.kept * reserved);
  const double most = static_cast<double>(model_.layers) - 1;
  c.offloaded_layers = static_cast<int>(std::min(std::ceil(needed), most));
  const Bytes away = block.footprint.kept * static_cast<double>(c.offloaded_layers);
  StageMemory& s = c.memory.front();
  s.activations -= away;
  s.buffers -= away * training_.stack.fragmentation;
  c.peak = s.total();
  // A layer's activations are sent while the next layer is computed, and fetched likewise.
  const Seconds transfer = block.footprint.kept / link;
  const auto layers = static_cast<double>(c.offloaded_layers);
  const Seconds forward = layers * max(Seconds(0), transfer - block.forward.time());
  const Seconds backward = layers * max(Seconds(0), transfer - block.backward.time());
  c.offload_exposed = forward + backward;
  c.times.forward.front() += forward;
  c.times.backward.front() += backward;
}

}  // namespace costmodel
