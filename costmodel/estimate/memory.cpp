#include "costmodel/estimate/memory.hpp"

#include <algorithm>
#include <optional>

#include "costmodel/estimate/backward_memory.hpp"
#include "costmodel/estimate/iteration_end.hpp"
#include "costmodel/estimate/node_drives.hpp"
#include "costmodel/estimate/sent_modules.hpp"
#include "costmodel/estimate/stage_cost.hpp"
#include "costmodel/estimate/zero_plus_plus.hpp"

namespace costmodel {

namespace {

// What a virtual stage holds for one micro-batch, and at work.
struct StageBytes {
  Bytes kept;     // from forward to backward
  Bytes sent;     // ... and is in the host's memory
  Bytes pending;  // between its input and its weight gradient, where these are separate actions
  StageMoment moment;  // the fullest of its backward
};

Bytes kept_by(const PlanInputs& in, std::size_t k) {
  const LayerMix& mix = in.mixes()[k];
  Bytes kept;
  const bool alternate = keeps_alternate(in);
  for (const LayerPrices::Kind& kind : in.layers.all()) {
    const int repeated = kind.repeated(mix);
    if (alternate) {
      kept += kind.again->footprint.kept_alternate * kind.number(mix);
      continue;
    }
    kept += kind.again->footprint.kept * repeated +
            kind.whole->footprint.kept * (kind.number(mix) - repeated);
  }
  if (in.on.model.encoder_decoder() &&
      mix.number[decoder_place] > 0) {  // and holds the encoder's output
    kept += passed_on(in.plan, in.on.training.sequence, in.on) /
            (in.plan.sequence_parallel ? in.plan.tp : 1);
  }
  if (mix.decoder_starts) kept += in.layers.decoder_embedding->footprint.kept;
  if (k == 0) {
    kept += in.layers.embedding->footprint.kept;
    for (const LayerPrices::Tower& own : in.layers.towers)
      kept += own.cost->footprint.kept * own.number;
  }
  if (k == in.last_stage()) {
    const auto heads = static_cast<double>(1 + in.on.model.mtp_layers);
    kept += in.layers.head->footprint.kept * heads;
    if (in.layers.mtp_start != nullptr) {
      kept +=
          (in.layers.mtp_start->footprint.kept + in.layers.mtp_layer->footprint.kept) * (heads - 1);
    }
  }
  return kept;
}

Bytes pending_by(const PlanInputs& in, std::size_t k) {
  Bytes kept;
  for (const LayerPrices::Kind& kind : in.layers.all())
    kept += kind.whole->footprint.kept_for_weights * kind.number(in.mixes()[k]);
  if (k == 0) {
    kept += in.layers.embedding->footprint.kept_for_weights;
    for (const LayerPrices::Tower& own : in.layers.towers)
      kept += own.cost->footprint.kept_for_weights * own.number;
  }
  if (k == in.last_stage()) kept += in.layers.head->footprint.kept_for_weights;
  return kept;
}

// By row.
std::vector<StageBytes> stage_bytes(const PlanInputs& in) {
  const bool split = splits_backward(in.plan.schedule);
  std::optional<SentModules> sent;
  if (in.plan.offload.modules != 0) sent.emplace(in);
  std::vector<StageBytes> all;
  all.reserve(in.alike->rows.size());
  for (const AlikeStages::Row& row : in.alike->rows) {
    all.push_back(row.layers < all.size()
                      ? all[row.layers]
                      : StageBytes{.kept = kept_by(in, row.stage),
                                   .sent = sent ? sent->of_stage(row.stage) : Bytes(0),
                                   .pending = split ? pending_by(in, row.stage) : Bytes(0),
                                   .moment = fullest_moment(in, row.stage)});
    if (row.layers >= all.size() - 1) all.back().kept -= all.back().sent;
  }
  return all;
}

// What a rank holds for its micro-batches in flight.
struct Held {
  Bytes bytes;
  double micro_batches = 0;
};

// The chunks of one rank.
class RankChunks {
 public:
  RankChunks(const PlanInputs& in, std::span<const StageBytes> rows, std::size_t rank)
      : in_(in),
        rows_(rows),
        rank_(rank),
        chunks_(in.plan.chunks()),
        first_(of(0).kept),
        middle_(chunks_ > 2 ? of(1).kept : first_),
        last_(of(chunks_ - 1).kept) {}

  // To another rank of the same kind, whose chunks are equal.
  void move_to(std::size_t rank) { rank_ = rank; }

  // The largest mix of chunks in flight.
  Held held() const {
    Held held = held_in_turn();
    const ParallelPlan& plan = in_.plan;
    if (!plan.experts.overlap || in_.on.model.experts == 0 || splits_backward(plan.schedule))
      return held;
    // One more is under way: a pipeline begins a forward earlier (Megatron-LM,
    // core/pipeline_parallel/ schedules.py, get_pp_rank_microbatches). Without one, the forward of
    // the next takes up, layer by layer, what the backward beside it frees.
    if (plan.pp == 1) return held;
    Bytes chunk;
    for (int v = 0; v < plan.vpp; ++v) chunk = max(chunk, of(v).kept);
    const double more = std::min(1.0, static_cast<double>(in_.micro_batches) - held.micro_batches);
    if (more <= 0) return held;
    return {held.bytes + chunk * more, held.micro_batches + more / plan.vpp};
  }

  // The micro-batches of each chunk in that mix. Only of orders that are counted by chunk.
  std::vector<double> mix() const {
    const auto number = static_cast<std::size_t>(chunks_);
    std::vector<double> counts(number);
    Bytes most;
    const auto take = [&](Bytes held, auto count_of) {
      if (held <= most) return;
      most = held;
      for (std::size_t v = 0; v < number; ++v) counts[v] = count_of(v);
    };
    if (in_.held.chunks != nullptr) {
      for (const auto& mix : in_.held.chunks->peaks[rank_]) {
        Bytes held;
        for (int v = 0; v < chunks_; ++v)
          held += of(v).kept * static_cast<double>(mix[static_cast<std::size_t>(v)]);
        take(held, [&](std::size_t v) { return static_cast<double>(mix[v]); });
      }
      return counts;
    }
    for (const EndMix& mix : (*in_.held.ends)[rank_]) {
      const double between = mix.total - mix.first - mix.last,
                   each = chunks_ > 2 ? between / (chunks_ - 2) : 0;
      take(bytes_of(mix), [&](std::size_t v) -> double {
        return v == 0 ? mix.first : v + 1 == number ? mix.last : each;
      });
    }
    return counts;
  }

  StageMoment moment() const {
    const std::size_t last = in_.last_stage();
    if (in_.has_stage(rank_, last)) return rows_[in_.alike->row_of->back()].moment;
    StageMoment most = of(0).moment;
    for (int v = 1; v < chunks_; ++v)
      if (of(v).moment.sum() > most.sum()) most = of(v).moment;
    return most;
  }

  // At the fullest of a list of actions.
  Bytes most_of(const Actions& actions) const {
    Bytes held, most;
    for (const Action& action : actions) {
      const StageBytes& own = of(action.stage / in_.plan.pp);
      if (action.kind == ActionKind::forward) held += own.kept;
      if (action.kind == ActionKind::backward) held += own.pending - own.kept;
      if (action.kind == ActionKind::weight_gradient) held += Bytes(0) - own.pending;
      most = max(most, held);
    }
    return most;
  }

  // Kept by one micro-batch from forward to backward, on all chunks.
  Bytes micro_batch() const {
    Bytes kept;
    for (int v = 0; v < chunks_; ++v) kept += of(v).kept;
    return kept;
  }

  // Of it, in the host's memory.
  Bytes micro_batch_sent() const {
    Bytes sent;
    for (int v = 0; v < chunks_; ++v) sent += of(v).sent;
    return sent;
  }

  const StageBytes& of(int chunk) const { return rows_[in_.row_of(chunk, rank_)]; }

 private:
  Held held_in_turn() const {
    const ParallelPlan& plan = in_.plan;
    if (splits_backward(plan.schedule) || plan.listed != nullptr) {
      const Bytes held = plan.listed != nullptr ? held_listed() : held_split();
      const Bytes one = micro_batch() / plan.ways();  // as many as would hold as much
      return {held, one > Bytes(0) ? held / one : 0};
    }
    if (plan.vpp == 1) {
      const auto m = static_cast<double>(in_.micro_batches);
      const auto rank = static_cast<int>(rank_);
      const double at_once = std::min(
          m, row_of(plan.schedule).forwards_first(rank, {plan.pp, plan.vpp, m, {}, {}, {}, {}}));
      return {first_ * at_once, at_once};
    }
    return in_.held.chunks != nullptr ? held_by_uneven() : held_by_even();
  }

  Bytes held_listed() const { return most_of(in_.plan.listed->schedule.actions[rank_]); }

  // For chunks that weigh the same but for the first and the last.
  Bytes bytes_of(const EndMix& mix) const {
    return middle_ * mix.total + (first_ - middle_) * mix.first + (last_ - middle_) * mix.last;
  }
  Held held_by_even() const {
    Bytes most;
    int total = 0;
    for (const EndMix& mix : (*in_.held.ends)[rank_]) {
      most = max(most, bytes_of(mix));
      total = std::max(total, mix.total);
    }
    return {most, static_cast<double>(total) / chunks_};
  }

  // For chunks of any size: every maximal mix, weighted chunk by chunk.
  Held held_by_uneven() const {
    Held most;
    for (const auto& mix : in_.held.chunks->peaks[rank_]) {
      Bytes held;
      double chunks = 0;
      for (int v = 0; v < in_.plan.vpp; ++v) {
        const double count = mix[static_cast<std::size_t>(v)];
        held += of(v).kept * count;
        chunks += count;
      }
      most.bytes = max(most.bytes, held);
      most.micro_batches = std::max(most.micro_batches, chunks / in_.plan.vpp);
    }
    return most;
  }

  // The most that a schedule with split backward may hold, forwards and pending weight gradients
  // together: the limit for which it is generated, unless its forwards alone hold more or there are
  // too few micro-batches to reach it. Ranks in the middle may stay below. After a backward its own
  // weight gradient is pending at least for a moment.
  Bytes held_split() const {
    const Bytes kept = micro_batch();
    Bytes longest, extra;
    for (int v = 0; v < chunks_; ++v) {
      longest += max(of(v).kept, of(v).pending);
      extra = max(extra, of(v).pending - of(v).kept);
    }
    Bytes forwards;  // what they hold alone: chunks that weigh differently may pass the limit
    if (in_.plan.chunks() > 1) {
      for (const EndMix& mix : (*in_.held.ends)[rank_])
        forwards = max(forwards, first_ * mix.first + (kept - first_) * mix.last);
    }
    const bool limited = row_of(in_.plan.schedule).held_limit != nullptr;
    const double limit = limited ? held_limit(in_.plan.schedule, in_.plan.pp, in_.plan.choices) : 0;
    return min(max(forwards, kept * limit) + extra, longest * in_.chunk_batches());
  }

  const PlanInputs& in_;
  std::span<const StageBytes> rows_;
  std::size_t rank_;
  int chunks_;
  Bytes first_, middle_, last_;  // kept by chunks, where all but the ends weigh the same
};

// What plan.offload sends to the host of a rank that updates `own` parameters. The optimizer there
// needs gradients in fp32, as of every sixteen bytes of a parameter's states in DeepSpeed's
// estimate_zero3_model_states_mem_needs (deepspeed/runtime/zero/stage3.py); with ZeRO 2 and 3
// stacks that send them as they are reduced keep none on the device.
void send_to_host(const PlanInputs& in, const RankWeights& rank, StageMemory& memory) {
  const HostOffload& offload = in.plan.offload;
  constexpr double fp32 = 4;
  const double own = own_parameters(in.plan, rank);
  const Bytes states = memory.optimizer * offload.optimizer;
  const Bytes parameters = memory.weights * offload.parameters;
  memory.optimizer -= states;
  memory.weights -= parameters;
  if (!offload.optimizer_on_drives()) memory.host += states + Bytes(own * fp32 * offload.optimizer);
  if (!offload.parameters_on_drives()) memory.host += parameters;
  if (offload.on_drives()) {
    const RankDrives drives = rank_drives(in, rank);
    memory.pinned = drives.pinned;
    memory.drives = drives.kept;
  }
  if (in.plan.zero >= 2 && in.on.training.stack.memory.gradient_offload)
    memory.gradients -= memory.gradients * offload.optimizer;
}

// Whether 16-bit weights exist while a layer works alone; the head is not computed again. That is a
// cast of fp32 weights that each rank holds in full: sharded or kept on the host, what is gathered
// in 16 bits stays from forward to backward (FSDP's SHARD_GRAD_OP, DeepSpeed's stage 2).
bool casts_weights(const PlanInputs& in) {
  const TrainingSpec& training = in.on.training;
  return training.stack.memory.autocast && training.stack.memory.master_weights &&
         training.precision != Precision::fp32 && in.plan.zero == 0 && in.plan.pp == 1 &&
         in.plan.offload.optimizer == 0 && in.plan.recompute.granularity == Recomputation::full &&
         !in.on.training.fine_tuning.adapts();
}

// Weights, gradients and optimizer states: what ZeRO leaves on each device.
StageMemory states_of(const PlanInputs& in, const RankParameters& rank) {
  const TrainingSpec& training = in.on.training;
  const StackSpec& stack = training.stack;
  const bool fp32_shards = in.plan.zero == 3 && stack.memory.fp32_shards &&
                           stack.memory.master_weights && training.precision != Precision::fp32;
  constexpr double fp32 = 4;
  const double weight = fp32_shards ? fp32 : weight_bytes_per_parameter(training);
  // The shards are the master copies, where there are any: plain adapters have none.
  const double shards = fp32_shards ? std::min(fp32, master_bytes_per_parameter(training)) : 0;
  const double part = sharded(rank.all, rank.experts, in.plan);
  const auto kept = [&](int stage) { return in.plan.zero >= stage ? part : rank.all; };
  const double states = in.plan.shards_states_further() ? part / in.plan.dp_replicate : kept(1);
  const bool both = stack.memory.bf16_optimizer && training.precision == Precision::bf16;
  const double narrow = both ? storage_bytes(training.precision) : 0;
  const double gradients = stack.zero.whole_gradients ? rank.all : kept(2);
  StageMemory memory;
  memory.weights = Bytes((casts_weights(in) ? in.layers.head->weights : kept(3)) * weight);
  const bool shards_frozen = gathers_in_forward(in.plan, training) && in.plan.shards() > 1;
  if (in.plan.zero < 3) memory.weights += rank.frozen;
  if (in.plan.zero == 3 || shards_frozen)
    memory.weights += Bytes(sharded(rank.frozen.value, rank.frozen_experts.value, in.plan));
  if (in.plan.zero_plus_plus.partition > 1) memory.weights += second_copy(rank, in.plan, training);
  memory.gradients = Bytes(gradients * (gradient_bytes_per_parameter(training) + narrow));
  if (keeps_alike(training.optimizer)) {
    memory.optimizer = Bytes(states * (optimizer_bytes_per_parameter(training) - shards));
  } else {
    memory.optimizer = Bytes(states * (master_bytes_per_parameter(training) - shards)) +
                       moments_kept_on(in.plan, rank.optimizer);
  }
  if (in.plan.offload.states()) send_to_host(in, rank, memory);
  return memory;
}

// The most of a layer on a rank.
template <class Size>
double largest_layer(const PlanInputs& in, std::size_t rank, Size size) {
  double most = 0;
  for (const LayerPrices::Kind& kind : in.layers.all()) most = std::max(most, size(*kind.again));
  if (in.has_stage(rank, 0)) {
    most = std::max(most, size(*in.layers.embedding));
    for (const LayerPrices::Tower& own : in.layers.towers) most = std::max(most, size(*own.cost));
  }
  if (in.mixes()[rank].decoder_starts) most = std::max(most, size(*in.layers.decoder_embedding));
  if (in.has_stage(rank, in.last_stage())) most = std::max(most, size(*in.layers.head));
  return most;
}

// The bytes that ZeRO-3 gathers at a time: of a layer, or of one of its modules.
double largest_gather(const PlanInputs& in, std::size_t rank) {
  const bool module = in.on.training.stack.zero.by_module;
  const double weight = weight_bytes_per_parameter(in.on.training);
  return largest_layer(in, rank, [=](const LayerCost& layer) {
    return module ? std::max(layer.largest_weights * weight, layer.largest_frozen.value)
                  : layer.weights * weight + layer.frozen.value;
  });
}

}  // namespace

// A rank that has several kinds of layers has nearly the shapes of all.
Bytes dummy_gradients(const PlanInputs& in, std::size_t rank) {
  if (!in.on.training.stack.memory.dummy_gradients || in.plan.zero > 1) return {};
  const LayerPrices& layers = in.layers;
  double elements = 0;
  for (const LayerPrices::Kind& kind : layers.all()) {
    bool here = false;
    for (int v = 0; v < in.plan.chunks(); ++v)
      here = here || kind.number(in.mixes()[in.stage_of(v, rank)]) > 0;
    if (here) elements = elements > 0 ? layers.dummy_gradients : kind.again->dummy_gradients;
  }
  if (in.has_stage(rank, in.last_stage())) {
    elements += layers.head->dummy_gradients;
    if (layers.mtp_start != nullptr) elements += layers.mtp_start->dummy_gradients;
  }
  return Bytes(elements * weight_bytes_per_parameter(in.on.training));
}

Bytes widened_gradients(const PlanInputs& in, const RankWeights& rank) {
  const TrainingSpec& training = in.on.training;
  const WidenedGradients how = training.stack.memory.widened_gradients;
  constexpr double fp32 = 4;
  if (how == WidenedGradients::never || in.plan.zero > 1 ||
      gradient_bytes_per_parameter(training) >= fp32 || !training.stack.memory.master_weights ||
      in.plan.offload.states() ||
      (how == WidenedGradients::plain && training.moment_precision != Precision::fp32))
    return {};
  return Bytes(own_parameters(in.plan, rank) * fp32);
}

namespace {

// Buffers: transfers in both directions; for ZeRO-3 the layer being computed and the one being
// gathered; for ZeRO-2 and -3 one layer's unsharded gradient.
Bytes buffers_of(const PlanInputs& in, std::size_t rank, Bytes transfer) {
  const ParallelPlan& plan = in.plan;
  const TrainingSpec& training = in.on.training;
  Bytes buffers;
  if (plan.pp > 1 && in.on.model.encoder_decoder()) {
    const auto last = static_cast<std::size_t>(plan.pp) - 1;
    const std::int64_t tokens = tokens_at_ends(in.mixes()[rank], rank == 0, rank == last, training);
    buffers += transfer_of(plan, tokens, in.on).sent * 2.0;
  } else if (plan.pp > 1) {
    buffers += transfer * (2.0 * plan.chunks());
  }
  buffers += dummy_gradients(in, rank);
  if (gathers_by_unit(in)) return buffers;  // the moment has them
  const bool module = training.stack.zero.by_module;
  if (plan.zero == 3)
    buffers += Bytes((training.stack.zero.prefetch ? 2 : 1) * largest_gather(in, rank));
  if (plan.zero >= 2) {
    const double trained = largest_layer(in, rank, [module](const LayerCost& layer) {
      return module ? layer.largest_weights : layer.weights;
    });
    buffers += Bytes(trained * gradient_bytes_per_parameter(training));
  }
  return buffers;
}

// Where gradients are freed with each step, a rank that holds all its micro-batches before the
// first backward has none then. After it those of its last chunk exist, and of a pipeline's period
// later those of one more.
void set_before_gradients(const PlanInputs& in, const RankChunks& chunks, Bytes all,
                          StageMemory& memory) {
  const int number = in.plan.chunks();
  const double period = std::min<double>(in.plan.pp, static_cast<double>(in.micro_batches));
  const Bytes freed = chunks.of(number - 1).kept, held = memory.activations;
  Bytes gradients;
  for (const int made : {1, number}) {
    const Bytes own = all * (static_cast<double>(made) / number),
                left = max(Bytes(0), held - freed * (1 + (made - 1) * period));
    if (own + left <= gradients + memory.activations) continue;
    gradients = own;
    memory.activations = left;
  }
  memory.gradients = gradients;
}

}  // namespace

std::vector<RankRow> rank_rows(const PlanInputs& in, std::span<const RankParameters> weights,
                               std::span<const AfterPipeline> after, Bytes transfer,
                               std::vector<RankRow> ranks) {
  const StackMemory& stack = in.on.training.stack.memory;
  const std::vector<StageBytes> rows = stage_bytes(in);
  const std::vector<std::size_t>& kind_of = in.alike->kind_of;
  ranks.resize(kind_of.size());  // all of each is set below
  // A rank's standing memory is that of the first of its kind; micro-batches in flight differ.
  StageMoment moment;
  Bytes buffers, standing_gradients, own_gradients, states_pinned;
  // A layer's tensors that are back from the host, and the next one's.
  const Bytes returning = in.plan.offload.modules != 0 ? SentModules(in).largest() * 2 : Bytes(0);
  std::size_t known = kind_of.size();  // the kind that the former are of
  std::optional<RankChunks> chunks;    // of that kind
  for (std::size_t r = 0; r < kind_of.size(); ++r) {
    const std::size_t kind = kind_of[r];
    ranks[r].weights = weights[kind];
    ranks[r].after = after[kind];
    StageMemory& memory = ranks[r].memory;
    if (kind != known) {
      chunks.emplace(in, rows, r);
      memory = states_of(in, weights[kind]);
      if (in.plan.chunks() == 1) memory.each = chunks->of(0).kept * (1 + stack.fragmentation);
      moment = chunks->moment();
      standing_gradients = memory.gradients;
      states_pinned = memory.pinned;
      memory.widened = widened_gradients(in, weights[kind]);
      if (gradients_appear(in)) memory.gradients = moment.gradients;
      own_gradients = memory.gradients;
      buffers = buffers_of(in, r, transfer);
      known = kind;
    } else {
      chunks->move_to(r);
      memory = ranks[r - 1].memory;
      memory.gradients = own_gradients;
    }
    const Held held = chunks->held();
    memory.in_flight_micro_batches = held.micro_batches;
    memory.activations = held.bytes + moment.activations;
    if (in.plan.offload.modules != 0) {
      memory.activations += returning;
      memory.pinned = states_pinned + chunks->micro_batch_sent() * held.micro_batches;
    }
    if (in.plan.pp > 1 && frees_gradients(in) && !gradients_appear(in) &&
        held.micro_batches >= static_cast<double>(in.micro_batches))
      set_before_gradients(in, *chunks, standing_gradients, memory);
    memory.buffers = buffers + moment.buffers;
    memory.buffers += memory.total() * stack.fragmentation + stack.context;
  }
  return ranks;
}

namespace {

const LayerCost& offloaded_layer(const PlanInputs& in) { return *in.layers.kinds.front().whole; }

Bytes offloaded(const PlanInputs& in, const Offload& offload) {
  return offloaded_layer(in).footprint.kept * static_cast<double>(offload.layers);
}

}  // namespace

std::vector<RankMemory> memory_over_time(const PlanInputs& in, const PlanCost& cost) {
  const double reserved = 1 + in.on.training.stack.memory.fragmentation;
  const std::vector<StageBytes> rows = stage_bytes(in);
  std::vector<RankMemory> all;
  for (std::size_t r = 0; r < cost.ranks.size(); ++r) {
    const RankChunks chunks(in, rows, r);
    RankMemory& own = all.emplace_back();
    own.standing = cost.ranks[r].memory.total() - chunks.held().bytes * reserved;
    std::vector<std::pair<int, int>> by_stage;  // of a two-way pipeline the second may come first
    for (int v = 0; v < in.plan.chunks(); ++v)
      by_stage.emplace_back(stage_of(in.plan.schedule, in.plan.pp, v, static_cast<int>(r)), v);
    std::ranges::sort(by_stage);
    for (const auto& [stage, v] : by_stage)
      own.chunks.push_back({chunks.of(v).kept * reserved, chunks.of(v).pending * reserved});
  }
  if (cost.offload.layers > 0) {  // it is the only micro-batch of the only rank
    const Bytes away = offloaded(in, cost.offload) * reserved;
    all.front().standing += away;
    all.front().chunks.front().kept -= away;
  }
  return all;
}

std::vector<RankMemory> memory_over_time(std::span<const RankRow> ranks) {
  std::vector<RankMemory> all;
  for (const RankRow& rank : ranks) {
    const StageMemory& memory = rank.memory;
    all.push_back(
        {memory.total() - memory.each * memory.in_flight_micro_batches, {{memory.each, {}}}});
  }
  return all;
}

void follow_order(const PlanInputs& in, const Schedule& schedule, PlanCost& cost) {
  const std::vector<StageBytes> rows = stage_bytes(in);
  Bytes peak;
  for (std::size_t r = 0; r < cost.ranks.size(); ++r) {
    const RankChunks chunks(in, rows, r);
    StageMemory& memory = cost.ranks[r].memory;
    const Bytes most = chunks.most_of(schedule.actions[r]), limit = chunks.held().bytes;
    if (most < limit) {
      memory.activations -= limit - most;
      memory.buffers -= (limit - most) * in.on.training.stack.memory.fragmentation;
      memory.in_flight_micro_batches *= most / limit;
    }
    if (memory.total() <= peak) continue;
    peak = memory.total();
    cost.fullest = r;
  }
  cost.peak = peak;
}

HeldShares held_shares(const PlanInputs& in) {
  HeldShares shares;
  if (!splits_backward(in.plan.schedule)) return shares;
  const std::vector<StageBytes> rows = stage_bytes(in);
  const std::size_t stages = in.mixes().size();
  shares.forward.assign(stages, 0);
  shares.pending.assign(stages, 0);
  for (std::size_t k = 0; k < stages; ++k) {
    const StageBytes& own = rows[(*in.alike->row_of)[k]];
    const Bytes micro_batch = RankChunks(in, rows, in.rank_of(k)).micro_batch();
    if (micro_batch.value <= 0) continue;
    shares.forward[k] = own.kept / micro_batch;
    shares.pending[k] = own.pending / micro_batch;
  }
  return shares;
}

std::vector<double> held_by_chunk(const PlanInputs& in, const RankRow& row, std::size_t rank) {
  const bool by_chunk =
      in.plan.vpp > 1 && !splits_backward(in.plan.schedule) && in.plan.listed == nullptr;
  const std::vector<StageBytes> rows = by_chunk ? stage_bytes(in) : std::vector<StageBytes>();
  if (by_chunk) return RankChunks(in, rows, rank).mix();
  return std::vector<double>(static_cast<std::size_t>(in.plan.chunks()),
                             row.memory.in_flight_micro_batches);
}

Offload offload_of(const PlanInputs& in) {
  if (in.plan.offload.modules != 0) {
    const SentModules sent(in);
    Offload most;
    most.every_stage = true;
    for (std::size_t k = 0; k < in.mixes().size(); ++k) {
      const Offload own = sent.exposed(k);
      if (own.exposed() > most.exposed()) most = own;
    }
    return most;
  }
  Offload offload;
  offload.layers = in.plan.offload.activation_layers;
  if (offload.layers == 0) return offload;
  const LayerCost& block = offloaded_layer(in);
  // A layer's activations are sent while the next layer is computed, and fetched likewise.
  const Seconds transfer = block.footprint.kept / in.on.cluster.device.host_bandwidth;
  const auto layers = static_cast<double>(offload.layers);
  const auto exposed = [&](Seconds window) {
    return in.on.training.overlap.nothing_hidden ? transfer : max(Seconds(0), transfer - window);
  };
  offload.forward = layers * exposed(block.forward.time());
  offload.backward = layers * exposed(block.backward.time());
  return offload;
}

StageMemory without_offloaded(const PlanInputs& in, const Offload& offload, StageMemory memory) {
  const Bytes away = offloaded(in, offload);
  memory.activations -= away;
  memory.pinned += away;
  memory.buffers -= away * in.on.training.stack.memory.fragmentation;
  return memory;
}

}  // namespace costmodel
