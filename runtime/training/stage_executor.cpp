#include "runtime/training/stage_executor.hpp"

#include <algorithm>

#include "costmodel/estimate/evaluator.hpp"
#include "costmodel/estimate/layer_mix.hpp"
#include "runtime/backend/tags.hpp"

namespace runtime {

using namespace costmodel;

namespace {

std::vector<int> as_ints(const std::vector<std::int64_t>& ranks) {
  return {ranks.begin(), ranks.end()};
}

GradientReducer::How how_to_reduce(bool beside, const Transport* its,
                                   const Communicator& replicas) {
  if (beside && replicas.at_once() != nullptr) return GradientReducer::How::in_a_stream;
  return its != nullptr ? GradientReducer::How::on_a_thread : GradientReducer::How::alone;
}

}  // namespace

bool reduces_beside(const TrainingSpec& training, const ParallelPlan& plan) {
  return training.overlap.overlap_grad_reduce && plan.zero < 2 && plan.dp > 1 &&
         plan.pipelines() == 1;
}

Group StageExecutor::group_along(Axis axis) const {
  return group_of(transport_, as_ints(mesh_.group(axis, transport_.rank())));
}

// The first and the last stage, which both hold the tied token table; other ranks are alone.
Group StageExecutor::ends() const {
  const int me = transport_.rank();
  const int last = costmodel::rank_of(plan_.schedule, plan_.pp, plan_.virtual_stages() - 1);
  if ((at_.pp != 0 && at_.pp != last) || last == 0) return group_of(transport_, {me});
  Coordinates first_at = at_, last_at = at_;
  first_at.pp = 0;
  last_at.pp = last;
  return group_of(transport_,
                  {static_cast<int>(mesh_.rank(first_at)), static_cast<int>(mesh_.rank(last_at))});
}

StageExecutor::StageExecutor(const Evaluator& evaluator, const ParallelPlan& plan,
                             Transport& transport, Device& device, const ExecutorOptions& options)
    : evaluator_(evaluator),
      plan_(plan),
      number_(format_of(evaluator.training().precision)),
      memory_(device.memory()),
      streams_(device.streams()),
      staged_(transport, memory_),
      transport_(options.fabric != nullptr ? static_cast<Transport&>(*options.fabric) : staged_),
      options_(options),
      beside_(options.fabric == nullptr && options.across == nullptr &&
                      reduces_beside(evaluator.training(), plan)
                  ? transport.beside()
                  : nullptr),
      staged_beside_(beside_ != nullptr ? *beside_ : transport, memory_),
      mesh_(plan),
      at_(mesh_.coordinates(transport.rank())),
      tensor_group_(group_along(Axis::tensor)),
      replica_group_(group_along(Axis::data)),
      ends_group_(ends()),
      tensor_(transport_, tensor_group_, traffic_, memory_, at_once(FabricUse::tensor)),
      replicas_(options.fabric != nullptr ? transport_ : staged_beside_, replica_group_,
                replica_traffic_, memory_, at_once(FabricUse::replicas)),
      ends_(transport_, ends_group_, traffic_, memory_, at_once(FabricUse::ends)),
      arena_(options.memory_limit, memory_, options.reuse),
      runner_(device, number_, tensor_, collective_tag(tensor_channel), arena_),
      reducer_(
          how_to_reduce(reduces_beside(evaluator.training(), plan), beside_, replicas_),
          [this] {
            if (streams_ != nullptr) memory_.wait();
            return now();
          },
          replicas_.at_once(), beside_),
      scale_(options.loss_scale),
      begin_(std::chrono::steady_clock::now()) {
  micro_batches_ = plan_.micro_batches(evaluator.training().global_batch);
  if (options.pipeline != nullptr) {
    micro_batches_ = options.pipeline->micro_batches;
    first_sequence_ = options.pipeline->first_sequence;
  }
  for (int chunk = 0; chunk < plan_.vpp; ++chunk)
    build_stage(costmodel::stage_of(plan_.schedule, plan_.pp, chunk, at_.pp));
}

// Null when the rank has no such group; its collectives are then no-ops.
GroupOperations* StageExecutor::at_once(FabricUse use) const {
  return options_.fabric != nullptr ? options_.fabric->group(use) : nullptr;
}

const LayerProgram& StageExecutor::program_of(LayerKind kind, bool recomputed) {
  const auto found = programs_.find({kind, recomputed});
  if (found != programs_.end()) return found->second;
  const auto what = recomputed ? region_of(plan_.recompute) : Recomputed::nothing;
  return programs_
      .emplace(std::pair{kind, recomputed}, layer_program(evaluator_.op_list(kind, plan_), what))
      .first->second;
}

void StageExecutor::build_stage(int stage) {
  stages_[stage];
  if (stage == 0) add_layer(stage, LayerKind::embedding, 0, false);
  std::int64_t first = 0;
  for (int k = 0; k < stage; ++k) first += layers_of(plan_, evaluator_.model(), k);
  const int layers = layers_of(plan_, evaluator_.model(), stage);
  const int again = recomputed_layers(plan_.recompute, layers);
  for (int i = 0; i < layers; ++i) add_layer(stage, LayerKind::block, first + i, i < again);
  if (stage + 1 == plan_.virtual_stages()) add_layer(stage, LayerKind::head, 0, false);
}

void StageExecutor::add_layer(int stage, LayerKind kind, std::int64_t number, bool recomputed) {
  const bool tied = evaluator_.model().tie_embeddings;
  LayerState* borrowed = kind == LayerKind::head && tied ? table_ : nullptr;
  ParallelPlan whole = plan_;
  whole.tp = 1;
  whole.sequence_parallel = false;
  const LayerProgram& program = program_of(kind, recomputed);
  states_.emplace_back(
      layer_parameters(program.list, evaluator_.op_list(kind, whole), evaluator_.model(),
                       {kind, number, at_.tp, borrowed != nullptr}, plan_.sequence_parallel),
      number_, plan_.zero, replicas_, collective_tag(replica_channel), arena_, options_.seed);
  names_.emplace_back(kind, number);
  LayerState& state = states_.back();
  if (kind == LayerKind::embedding && tied) table_ = &state;
  if (borrowed != nullptr) borrowed_ = true;
  if (kind == LayerKind::head && tied && borrowed == nullptr) table_copy_ = &state;
  // Dropout streams: 0 is the embedding's.
  const auto stream = kind == LayerKind::block ? static_cast<std::uint64_t>(number) + 1 : 0;
  stages_[stage].push_back({&program, &state, borrowed, stream, {}, {}});
}

void StageExecutor::begin_iteration(std::int64_t number) {
  iteration_ = number;
  runner_.clear_loss();
  for (LayerState& state : states_) state.begin_iteration();
  summed_.clear();
  begin_ = std::chrono::steady_clock::now();
  used_moments_ = 0;
  if (streams_ != nullptr) moment();
}

Moment StageExecutor::moment() {
  if (streams_ == nullptr) return {now()};
  if (used_moments_ == moments_.size()) moments_.push_back(streams_->make_event());
  const Streams::Event event = moments_[used_moments_++];
  streams_->record(Streams::compute, event);
  return {{}, event};
}

Seconds StageExecutor::time_of(const Moment& moment) {
  if (moment.event < 0) return moment.time;
  return streams_->time(moments_.front(), moment.event);
}

// With streams, events mark the time of an action, so no wait is needed.
void StageExecutor::wait_for_action() {
  if (streams_ == nullptr) memory_.wait();
}

Seconds StageExecutor::now() const {
  return Seconds(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count());
}

Place StageExecutor::place_of(const Layer& layer, int micro_batch) const {
  const auto& model = evaluator_.model();
  const auto& training = evaluator_.training();
  const std::int64_t tokens = plan_.micro_batch * training.sequence;
  const std::int64_t heads = model.heads / plan_.tp, kv_heads = model.kv_heads / plan_.tp;
  const std::int64_t in_batch =
      first_sequence_ + (std::int64_t{micro_batch} * plan_.dp + at_.dp) * plan_.micro_batch;
  return {.first_sample = iteration_ * training.global_batch + in_batch,
          .sequences = plan_.micro_batch,
          .sequence = training.sequence,
          .first_row = plan_.sequence_parallel ? tokens / plan_.tp * at_.tp : 0,
          .heads = heads,
          .kv_heads = kv_heads,
          .first_head = heads * at_.tp,
          .all_heads = model.heads,
          .head_dim = model.head_dim,
          .first_token = padded_vocab(model.vocab, plan_.tp) / plan_.tp * at_.tp,
          .vocab = model.vocab,
          .seed = options_.seed,
          .layer = layer.number,
          .dropout = model.dropout,
          .loss_scale = (loss_scale() != nullptr ? scale_.value() : 1) /
                        static_cast<double>(training.global_batch * training.sequence)};
}

// The tied table of a head stays gathered until the micro-batch's other end has used it, like the
// root of an FSDP model.
void StageExecutor::enter(Layer& layer) {
  layer.state->gather();
  if (layer.table != nullptr) layer.table->gather();
}

void StageExecutor::leave(Layer& layer, bool backward) {
  // With one stage, the head uses the embedding's table.
  const bool shared = layer.state == table_ && plan_.virtual_stages() == 1;
  if (backward) return layer.state->release();
  if (!shared) layer.state->release();
  if (layer.table != nullptr) layer.table->release();
}

void StageExecutor::end_micro_batch(Layer& layer) {
  if (plan_.zero >= 2) reduce_partial(*layer.state);
  layer.state->end_micro_batch();
  note_gradients(*layer.state);
  if (layer.table != nullptr) note_gradients(*layer.table);
}

// A schedule may take micro-batches, and the two users of a table, in any order.
void StageExecutor::note_gradients(LayerState& state) {
  const std::int64_t users = &state == table_ && borrowed_ ? 2 : 1;
  if (++summed_[&state] < users * micro_batches_) return;
  state.end_micro_batch();
  finish_layer(state);
}

void StageExecutor::forward(int stage, int micro_batch) {
  Block x;
  if (stage > 0) x = std::move(results_.at({stage - 1, micro_batch}));
  results_.erase({stage - 1, micro_batch});
  for (Layer& layer : stages_.at(stage)) {
    enter(layer);
    const Place place = place_of(layer, micro_batch);
    x = runner_.forward({*layer.program, *layer.state, layer.table, place, layer.held[micro_batch]},
                        std::move(x));
    leave(layer, false);
  }
  if (stage + 1 < plan_.virtual_stages()) results_[{stage, micro_batch}] = std::move(x);
  wait_for_action();
}

void StageExecutor::backward(int stage, int micro_batch) {
  Block gradient;
  if (stage + 1 < plan_.virtual_stages()) {
    gradient = std::move(gradients_.at({stage + 1, micro_batch}));
    gradients_.erase({stage + 1, micro_batch});
  }
  auto& layers = stages_.at(stage);
  for (std::size_t i = layers.size(); i-- > 0;) {
    Layer& layer = layers[i];
    enter(layer);
    const Place place = place_of(layer, micro_batch);
    const LayerRun run{*layer.program, *layer.state, layer.table, place, layer.held[micro_batch]};
    if (splits_backward(plan_.schedule)) {
      gradient = runner_.input_gradients(run, std::move(gradient), layer.pending[micro_batch]);
    } else {
      gradient = runner_.backward(run, std::move(gradient));
      layer.held.erase(micro_batch);
      end_micro_batch(layer);
    }
    leave(layer, true);
  }
  if (stage > 0) gradients_[{stage, micro_batch}] = std::move(gradient);
  wait_for_action();
}

void StageExecutor::weight_gradient(int stage, int micro_batch) {
  auto& layers = stages_.at(stage);
  for (std::size_t i = layers.size(); i-- > 0;) {
    Layer& layer = layers[i];
    enter(layer);
    const Place place = place_of(layer, micro_batch);
    runner_.weight_gradients(
        {*layer.program, *layer.state, layer.table, place, layer.held[micro_batch]},
        std::move(layer.pending[micro_batch]));
    layer.held.erase(micro_batch);
    layer.pending.erase(micro_batch);
    end_micro_batch(layer);
    leave(layer, true);
  }
  wait_for_action();
}

void StageExecutor::reduce_partial(LayerState& state) {
  if (plan_.tp == 1) return;
  std::size_t elements = 0;
  for (const Parameter& p : state.layout().tensors) elements += p.partial ? p.size() : 0;
  if (elements == 0) return;
  Block packed = arena_.take(MemoryKind::buffers, elements * sizeof(float));
  const auto gradients = state.gradients();
  const auto each = [&](auto copy) {
    std::size_t at = 0;
    for (const Parameter& p : state.layout().tensors) {
      if (!p.partial) continue;
      copy(gradients.subspan(p.offset, p.size()), packed.floats().subspan(at, p.size()));
      at += p.size();
    }
  };
  each([&](auto gradient, auto part) { memory_.copy(gradient, part); });
  tensor_.all_reduce(packed.floats(), Reduction::sum, collective_tag(tensor_channel));
  each([&](auto gradient, auto part) { memory_.copy(part, gradient); });
}

// Each end adds the other's gradient of the table, which is the first tensor of one layer and the
// last of the other.
void StageExecutor::reduce_tied_table() {
  if (ends_group_.size() == 1) return;
  LayerState& state = table_ != nullptr ? *table_ : *table_copy_;
  for (const Parameter& p : state.layout().tensors) {
    if (!p.token_table) continue;
    ends_.all_reduce(state.gradients().subspan(p.offset, p.size()), Reduction::sum,
                     collective_tag(ends_channel));
  }
}

bool StageExecutor::is_tied_end(const LayerState& state) const {
  return ends_group_.size() > 1 && (&state == table_ || &state == table_copy_);
}

// The table shared with the other end of the pipeline is reduced last.
void StageExecutor::finish_layer(LayerState& state) {
  if (plan_.zero >= 2) return;
  reduce_partial(state);
  if (reducer_.beside() && !is_tied_end(state)) reducer_.add(state);
}

std::vector<TimeSpan> StageExecutor::reduce_across() {
  std::vector<TimeSpan> spans;
  for (std::size_t i = 0; i < states_.size(); ++i) {
    LayerState& state = states_[i];
    const Seconds start = now();
    state.reduce_to_share();
    options_.across->sum(names_[i].first, names_[i].second, state.layout().size,
                         state.gradient_share());
    state.spread_share();
    memory_.wait();
    spans.push_back({start, now()});
  }
  return spans;
}

std::vector<TimeSpan> StageExecutor::reduce_gradients() {
  if (evaluator_.model().tie_embeddings) reduce_tied_table();
  if (options_.across != nullptr) return reduce_across();
  if (replica_group_.size() == 1) {  // nothing to reduce, and no layer to wait for by itself
    memory_.wait();
    return {};
  }
  for (LayerState& state : states_)
    if (!reducer_.beside() || is_tied_end(state)) reducer_.add(state);
  auto spans = reducer_.finish(moments_.empty() ? 0 : moments_.front());
  memory_.wait();
  return spans;
}

TrafficCount StageExecutor::traffic() const {
  TrafficCount sum = traffic_;
  sum += replica_traffic_;
  if (options_.across != nullptr) sum += options_.across->traffic();
  return sum;
}

std::vector<AdamTensor> StageExecutor::updated() {
  std::vector<AdamTensor> tensors;
  for (LayerState& state : states_) tensors.push_back(state.updated());
  return tensors;
}

bool StageExecutor::overflowed() { return loss_scale() != nullptr && !memory_.finite(updated()); }

void StageExecutor::step(bool overflowed_anywhere) {
  const double scale = loss_scale() != nullptr ? scale_.value() : 1;
  scale_.note(overflowed_anywhere);
  if (!overflowed_anywhere) memory_.adamw(updated(), options_.optimizer, scale_.steps(), 1 / scale);
  for (LayerState& state : states_) state.end_update();
  memory_.wait();
  if (options_.fabric != nullptr) options_.fabric->settle();
}

void StageExecutor::restart_counts() {
  arena_.restart_marks();
  traffic_ = replica_traffic_ = {};
  if (options_.across != nullptr) options_.across->restart_count();
}

}  // namespace runtime
