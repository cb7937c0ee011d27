#include "costmodel/estimate/price_cache.hpp"

#include <algorithm>
#include <bit>

#include "costmodel/plan/mesh.hpp"
#include "costmodel/schedule/zero_bubble.hpp"

namespace costmodel {

namespace {

std::int64_t pair(std::int64_t a, std::int64_t b) { return a << 32 | b; }

template <class Parts>
std::size_t mixed(const Parts& key) {
  std::uint64_t hash = 0;
  for (const auto part : key) {
    hash = (hash ^ static_cast<std::uint64_t>(part)) * 0x9e3779b97f4a7c15;  // 2^64 / golden ratio
    hash ^= hash >> 32;
  }
  return hash;
}

}  // namespace

std::size_t PriceCache::KeyHash::operator()(const LayerKey& key) const { return mixed(key); }

std::size_t PriceCache::TimesHash::operator()(const TimesKey& key) const { return mixed(key); }

// Of a plan, without kind and recomputation of a layer.
PriceCache::LayerKey PriceCache::key_of(const ParallelPlan& plan, const Workload& on) {
  const bool slower_in_pipeline =
      on.training.stack.host.tensor_rank.value > 0 && pipeline_leaves_node(plan, on.cluster);
  LayerKey key{0,
               pair((plan.sequence_parallel ? 1 : 0) + (joins_buffer(plan) ? 2 : 0) +
                        (plan.experts.shared_overlap ? 4 : 0) + (slower_in_pipeline ? 8 : 0) +
                        (static_cast<std::int64_t>(plan.experts.dispatcher) << 4),
                    static_cast<std::int64_t>(plan.cp_comm)),
               pair(plan.tp, plan.cp),
               pair(plan.ep, plan.etp),
               plan.micro_batch,
               0,
               0};
  if (plan.rank_order != default_rank_order) {  // by default the sizes say how far ranks are apart
    const Mesh mesh(plan), experts = expert_mesh(plan);
    key[5] = pair(mesh.stride(Axis::tensor), mesh.stride(Axis::context));
    key[6] = pair(experts.stride(Axis::tensor), experts.stride(Axis::expert));
  }
  return key;
}

const LayerCost& PriceCache::layer(LayerKey key, LayerKind kind, const ParallelPlan& plan,
                                   Recomputed what, const Workload& on) {
  key[0] = pair(kind.code(), static_cast<std::int64_t>(what));
  auto& known = layers_[key];
  if (known != nullptr) return *known;
  const LayerContext context = context_of(plan, on);
  const OpList list = build_layer(kind, on.model, context);
  LayerCost cost = layer_cost(list, what, pricing_of(plan, on));
  cost.partial_weights = partial_weights(list, context);
  if (on.training.stack.memory.dummy_gradients) {
    cost.matrices = trained_matrices(list);
    cost.dummy_gradients = elements_by_shape(cost.matrices);
  }
  cost.optimizer =
      optimizer_share(list, kind, on.model.tie_embeddings, on.training, on.cluster.device);
  known = std::make_shared<const LayerCost>(cost);
  return *known;
}

const LayerCost& PriceCache::layer(LayerKind kind, const ParallelPlan& plan, Recomputed what,
                                   const Workload& on) {
  return layer(key_of(plan, on), kind, plan, what, on);
}

LayerPrices PriceCache::price_layers(const LayerKey& key, const ParallelPlan& plan,
                                     const Workload& on) {
  const Recomputed region = region_of(plan.recompute);
  const auto priced = [&](LayerKind kind) {
    return &layer(key, kind, plan, Recomputed::nothing, on);
  };
  LayerPrices f;
  f.embedding = priced(LayerKind::embedding);
  f.head = priced(LayerKind::head);
  std::vector<MatrixShape> matrices;
  for (const Block& block : on.model.blocks()) {
    const LayerCost& again = layer(key, block, plan, region, on);
    f.kinds[f.count] = {block, f.count, &again, plan.recompute.layers > 0 ? priced(block) : &again};
    ++f.count;
    matrices.insert(matrices.end(), again.matrices.begin(), again.matrices.end());
  }
  f.dummy_gradients = elements_by_shape(std::move(matrices));
  if (on.model.mtp_layers > 0) {
    f.mtp_start = priced(LayerKind::mtp_start);
    f.mtp_layer = &layer(key, mtp_layer(on.model), plan, region, on);
  }
  if (on.model.encoder_decoder()) f.decoder_embedding = priced(LayerKind::decoder_embedding);
  for (const TowerLayers& own : tower_layers(on.model)) {
    const bool again = recomputes(own.kind, plan.recompute, on.training.fine_tuning);
    f.towers.push_back(
        {own, &layer(key, own.kind, plan, again ? region : Recomputed::nothing, on), again});
  }
  return f;
}

const LayerPrices& PriceCache::layers(const ParallelPlan& plan, const Workload& on) {
  LayerKey key = key_of(plan, on);
  key[0] =
      pair(plan.recompute.layers > 0 ? 1 : 0, static_cast<std::int64_t>(region_of(plan.recompute)));
  const auto found = plans_.find(key);
  if (found != plans_.end()) return found->second;
  return plans_.emplace(key, price_layers(key, plan, on)).first->second;
}

std::shared_ptr<const AlikeStages> PriceCache::stages(const ParallelPlan& plan,
                                                      const ModelSpec& model) {
  const auto found = [&] {
    return std::make_shared<const AlikeStages>(alike_stages(stage_mixes(plan, model), plan));
  };
  if (!plan.stage_layers.empty()) return found();
  const ScheduleRow& row = row_of(plan.schedule);
  const StagesKey key{row.folded    ? 1
                      : row.two_way ? 2
                                    : 0,
                      plan.pp, plan.vpp, plan.recompute.layers};
  auto& known = stages_[key];
  if (known == nullptr) known = found();
  return known;
}

namespace {

// The micro-batches of the schedule from which the mixes of chunks in flight are counted. They
// repeat with every p micro-batches, or group of them, so four times as many suffice; three where
// the warm-up is that of the interleaved schedule, less than (v + 1) p of 3 v p forwards.
std::int64_t shown_micro_batches(const ParallelPlan& plan, std::int64_t m) {
  const std::int64_t group = plan.choices.group,
                     periods = plan.schedule == ScheduleKind::interleaved ? 3 : 4,
                     enough = periods * std::max<std::int64_t>(group, plan.pp);
  if (m == plan.pp || m <= enough) return m;
  return enough + (group > 0 ? m % group : 0);
}

}  // namespace

HeldMixes PriceCache::held(const ParallelPlan& plan, std::int64_t m, const ModelSpec& model) {
  if (plan.chunks() == 1 || plan.listed != nullptr) return {};
  const std::int64_t shown = shown_micro_batches(plan, m);
  const ScheduleKey key{2 * static_cast<std::int64_t>(plan.schedule) + (m == plan.pp ? 1 : 0),
                        plan.pp, plan.vpp, shown, plan.choices.group};
  const auto once = [&](auto& cache, auto find) {
    const auto found = cache.find(key);
    if (found != cache.end()) return &found->second;
    return &cache
                .emplace(key, find(generate(plan.schedule, plan.pp, plan.vpp,
                                            static_cast<int>(shown), plan.choices)))
                .first->second;
  };
  const bool uneven = !plan.stage_layers.empty() || model.mixes_layers();
  if (!splits_backward(plan.schedule) && uneven)
    return {.ends = nullptr, .chunks = once(in_flight_, in_flight)};
  return {.ends = once(end_mixes_, end_mixes), .chunks = nullptr};
}

const SimulationProgram& PriceCache::program(const ParallelPlan& plan, std::int64_t m) {
  const ScheduleKey key{static_cast<std::int64_t>(plan.schedule), plan.pp, plan.vpp, m,
                        plan.choices.group};
  const auto found = programs_.find(key);
  if (found != programs_.end()) return found->second;
  const std::int64_t actions = 2 * m * plan.virtual_stages();
  if (kept_actions_ + actions > most_kept_actions) {
    programs_.clear();
    kept_actions_ = 0;
  }
  kept_actions_ += actions;
  const Schedule schedule =
      generate(plan.schedule, plan.pp, plan.vpp, static_cast<int>(m), plan.choices);
  return programs_.emplace(key, compile(schedule)).first->second;
}

const SimulationResult& PriceCache::simulated(const ParallelPlan& plan, std::int64_t m,
                                              const PipelineTimes& times) {
  asked_.clear();
  for (const std::int64_t part :
       {static_cast<std::int64_t>(plan.schedule), std::int64_t{plan.pp}, std::int64_t{plan.vpp}, m,
        std::int64_t{plan.choices.group}, std::int64_t{times.blocking}})
    asked_.push_back(static_cast<std::uint64_t>(part));
  asked_.push_back(std::bit_cast<std::uint64_t>(times.transfer.value));
  for (const auto* list : {&times.forward, &times.backward, &times.weight_gradient, &times.together,
                           &times.forward_transfer, &times.backward_transfer}) {
    asked_.push_back(list->size());
    for (const Seconds time : *list) asked_.push_back(std::bit_cast<std::uint64_t>(time.value));
  }
  const auto found = simulations_.find(asked_);
  if (found != simulations_.end()) return found->second;
  const std::size_t kept = asked_.size() + 3 * static_cast<std::size_t>(plan.pp);
  if (kept_times_ + kept > most_kept_times) {
    simulations_.clear();
    kept_times_ = 0;
  }
  kept_times_ += kept;
  return simulations_.emplace(asked_, simulate(program(plan, m), times, scratch_)).first->second;
}

}  // namespace costmodel
