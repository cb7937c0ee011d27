#include "runtime/serving/served_rank.hpp"

#include <algorithm>
#include <numeric>

#include "costmodel/base/error.hpp"
#include "costmodel/plan/parallel_plan.hpp"
#include "runtime/backend/tags.hpp"
#include "runtime/cpu/token_draw.hpp"
#include "runtime/devices/yardstick.hpp"
#include "runtime/ranks/launch.hpp"

namespace runtime {

using namespace costmodel;

namespace {

constexpr double element = sizeof(float);

Group ranks_from(const Transport& transport, int first, int count) {
  std::vector<int> ranks(static_cast<std::size_t>(count));
  std::iota(ranks.begin(), ranks.end(), first);
  return group_of(transport, ranks);
}

CacheShape cache_shape(const ServedJob& job, const ServedStage& stage) {
  const cpu::HeadLayout layout{1, 1, job.model.heads / job.sizes.tp,
                               job.model.kv_heads / job.sizes.tp, job.model.head_dim};
  return {.layers = stage.layers,
          .sequences = job.batch.requests,
          .tokens = job.batch.cached(),
          .block_size = job.block_size,
          .elements = cpu::block_elements(layout, job.block_size)};
}

std::size_t at(std::int64_t place) { return static_cast<std::size_t>(place); }

template <class T>
std::span<const std::byte> bytes_of(std::span<T> values) {
  return std::as_bytes(values);
}

// The last row of each sequence.
void copy_last_rows(const ServedShape& shape, std::int64_t cols, const Block& from, Block& to) {
  for (std::int64_t i = 0; i < shape.sequences; ++i) {
    const auto row = from.floats().subspan(at(((i + 1) * shape.tokens - 1) * cols), at(cols));
    std::ranges::copy(row, to.floats().begin() + i * cols);
  }
}

}  // namespace

std::vector<std::int64_t> drawn_prompts(std::uint64_t seed, std::int64_t requests,
                                        std::int64_t tokens, std::int64_t vocab) {
  const cpu::TokenDraw draw{
      .seed = seed, .sequences = requests, .sequence = tokens, .vocab = vocab};
  std::vector<std::int64_t> ids(at(draw.count()));
  for (std::int64_t i = 0; i < draw.count(); ++i) ids[at(i)] = draw.id(i);
  return ids;
}

ServedRank::ServedRank(const ServedJob& job, Transport& transport, Device& device)
    : job_(job),
      transport_(transport),
      tp_rank_(transport.rank() % job.sizes.tp),
      pp_rank_(transport.rank() / job.sizes.tp % job.sizes.pp),
      replica_(transport.rank() / (job.sizes.tp * job.sizes.pp)),
      stage_(served_stage(job.model, job.sizes.pp, pp_rank_)),
      tensor_group_(ranks_from(transport, transport.rank() - tp_rank_, job.sizes.tp)),
      all_group_(ranks_from(transport, 0, transport.size())),
      tensor_(transport, tensor_group_, traffic_),
      all_(transport, all_group_, uncounted_),
      arena_(job.memory_limit, device.memory()),
      forward_(device, tensor_, collective_tag(tensor_channel), arena_),
      cache_(cache_shape(job, stage_), arena_),
      next_(at(job.batch.requests)),
      made_(stage_.last ? at(job.batch.requests * job.batch.output) : 0) {
  if (stage_.first) add_layer(LayerKind::embedding, 0);
  for (std::int64_t i = 0; i < stage_.layers; ++i)
    add_layer(LayerKind::block, stage_.first_layer + i);
  if (stage_.last) add_layer(LayerKind::head, 0);
}

void ServedRank::add_layer(LayerKind kind, std::int64_t number) {
  const bool tied = kind == LayerKind::head && stage_.first && job_.model.tie_embeddings;
  const OpList whole = served_list(kind, job_.model, 1, {}, element);
  LayerWeights weights{layer_parameters(program(kind, {}).list, whole, job_.model,
                                        {kind, number, tp_rank_, tied}, false),
                       {}};
  weights.values = arena_.take(MemoryKind::weights, weights.layout.size * sizeof(float));
  initialise(weights.layout, job_.seed, weights.values.floats(), cores_per_rank(transport_.size()));
  layers_.push_back({kind, std::move(weights)});
}

const LayerProgram& ServedRank::program(LayerKind kind, const ServedShape& shape) {
  const std::pair key{kind, shape};
  if (const auto found = programs_.find(key); found != programs_.end()) return found->second;
  return programs_
      .emplace(key, layer_program(served_list(kind, job_.model, job_.sizes.tp, shape, element),
                                  Recomputed::nothing))
      .first->second;
}

Place ServedRank::place(const ServedShape& shape, std::int64_t before) const {
  const ModelSpec& m = job_.model;
  const int tp = job_.sizes.tp;
  return {.sequences = shape.sequences,
          .sequence = shape.tokens,
          .position = before,
          .heads = m.heads / tp,
          .kv_heads = m.kv_heads / tp,
          .first_head = m.heads / tp * tp_rank_,
          .all_heads = m.heads,
          .head_dim = m.head_dim,
          .first_token = padded_vocab(m.vocab, tp) / tp * tp_rank_,
          .vocab = m.vocab,
          .seed = job_.seed};
}

ServedRank::Part ServedRank::part(int number) const {
  const std::int64_t first = job_.batch.first(number);
  return {number, first, job_.batch.first(number + 1) - first};
}

int ServedRank::rank_of(int stage) const {
  return (replica_ * job_.sizes.pp + stage) * job_.sizes.tp + tp_rank_;
}

std::span<std::int64_t> ServedRank::next(const Part& part) {
  return std::span(next_).subspan(at(part.first), at(part.count));
}

Block ServedRank::layers(const Part& part, std::int64_t tokens, std::int64_t before, Block x) {
  const ServedShape shape{part.count, tokens};
  const Place where = place(shape, before);
  cache_.hold(part.first, part.count, before + tokens);
  std::int64_t number = 0;
  for (const Layer& layer : layers_) {
    if (layer.kind == LayerKind::head) continue;
    LayerPass pass{program(layer.kind, shape), layer.weights, nullptr, where, ids_};
    const bool block = layer.kind == LayerKind::block;
    cpu::CachedKeys keys;
    if (block) keys = cache_.of(number++, part.first, part.count, before);
    if (block) pass.cache = &keys;
    x = forward_.run(pass, std::move(x));
  }
  return x;
}

// Of the last token of each request.
Block ServedRank::logits(const Part& part, std::int64_t tokens, Block hidden) {
  const ServedShape shape{part.count, 1};
  if (tokens > 1) {
    Block last =
        arena_.take(MemoryKind::activations, at(part.count * job_.model.hidden) * sizeof(float));
    copy_last_rows({part.count, tokens}, job_.model.hidden, hidden, last);
    hidden = std::move(last);
  }
  const bool tied = stage_.first && job_.model.tie_embeddings;
  const Place where = place(shape, 0);
  return forward_.run({program(LayerKind::head, shape), layers_.back().weights,
                       tied ? &layers_.front().weights : nullptr, where},
                      std::move(hidden));
}

// [tp][rows][columns of a rank]
Block ServedRank::gathered(Block own) {
  const int tp = job_.sizes.tp;
  if (tp == 1) return own;
  Block all = arena_.take(MemoryKind::activations, own.bytes() * at(tp));
  const std::size_t size = own.floats().size();
  std::ranges::copy(own.floats(), all.floats().subspan(size * at(tp_rank_), size).begin());
  tensor_.all_gather(all.floats(), collective_tag(tensor_channel));
  return all;
}

// The lowest id of the largest logits; padding of the vocabulary is no token.
void ServedRank::choose(const Part& part, const Block& logits) {
  const std::int64_t tp = job_.sizes.tp;
  const std::int64_t cols = padded_vocab(job_.model.vocab, job_.sizes.tp) / tp;
  const auto all = logits.floats();
  for (std::int64_t i = 0; i < part.count; ++i) {
    std::int64_t best = 0;
    float most = all[at(i * cols)];
    for (std::int64_t rank = 0; rank < tp; ++rank) {
      const std::int64_t real = std::clamp<std::int64_t>(job_.model.vocab - rank * cols, 0, cols);
      const auto row = all.subspan(at((rank * part.count + i) * cols), at(real));
      const auto largest = std::ranges::max_element(row);
      if (largest == row.end() || *largest <= most) continue;
      most = *largest;
      best = rank * cols + (largest - row.begin());
    }
    next(part)[at(i)] = best;
  }
}

Block ServedRank::receive(const Part& part, std::int64_t rows) {
  Block block = arena_.take(MemoryKind::activations, at(rows * job_.model.hidden) * sizeof(float));
  transport_.recv(rank_of(pp_rank_ - 1), forward_tag(pp_rank_ - 1, part.number),
                  std::as_writable_bytes(block.floats()));
  return block;
}

void ServedRank::pass_on(const Part& part, const Block& hidden) {
  transport_.send(rank_of(pp_rank_ + 1), forward_tag(pp_rank_, part.number),
                  bytes_of(hidden.floats()));
  traffic_.add(CollectiveKind::send, hidden.bytes());
}

void ServedRank::give_back_tokens(const Part& part) {
  const auto message = bytes_of(next(part));
  transport_.send(rank_of(0), backward_tag(pp_rank_, part.number), message);
  traffic_.add(CollectiveKind::send, message.size());
}

void ServedRank::take_tokens(const Part& part) {
  const int last = job_.sizes.pp - 1;
  transport_.recv(rank_of(last), backward_tag(last, part.number),
                  std::as_writable_bytes(next(part)));
}

void ServedRank::step(const Part& part, std::int64_t tokens, std::int64_t before, bool ends) {
  Block x;
  if (!stage_.first) x = receive(part, part.count * tokens);
  x = layers(part, tokens, before, std::move(x));
  if (!stage_.last) return pass_on(part, x);
  if (!ends) return;
  choose(part, gathered(logits(part, tokens, std::move(x))));
  for (std::int64_t i = 0; i < part.count; ++i)
    made_[at((part.first + i) * job_.batch.output + round_)] = next(part)[at(i)];
}

// As many whole prompts at a time as the budget holds, or a chunk of one.
void ServedRank::prefill(const Part& part) {
  const ServedBatch& batch = job_.batch;
  const std::int64_t most = std::max<std::int64_t>(1, batch.budget / batch.input);
  const std::int64_t chunk = std::min(batch.input, batch.budget);
  for (std::int64_t done = 0; done < part.count; done += most) {
    const Part some{part.number, part.first + done, std::min(most, part.count - done)};
    const std::int64_t first = (replica_ * batch.requests + some.first) * batch.input;
    for (std::int64_t before = 0; before < batch.input; before += chunk) {
      const std::int64_t tokens = std::min(chunk, batch.input - before);
      const auto ids = std::span(job_.prompts).subspan(at(first + before), at(some.count * tokens));
      ids_.assign(ids.begin(), ids.end());
      step(some, tokens, before, before + tokens == batch.input);
    }
  }
}

void ServedRank::decode(const Part& part, std::int64_t round) {
  if (stage_.first && !stage_.last) take_tokens(part);
  const auto ids = next(part);
  ids_.assign(ids.begin(), ids.end());
  step(part, 1, job_.batch.input + round - 1);
}

ServedMeasurement ServedRank::counted() const {
  ServedMeasurement m;
  m.traffic = traffic_;
  m.tokens = made_;
  m.weights = static_cast<std::int64_t>(arena_.peak(MemoryKind::weights));
  m.cache = static_cast<std::int64_t>(arena_.peak(MemoryKind::buffers));
  m.activations = static_cast<std::int64_t>(arena_.peak(MemoryKind::activations));
  return m;
}

ServedMeasurement ServedRank::serve() {
  cache_.clear();
  arena_.restart_marks();
  traffic_ = {};
  all_.barrier(control_tag(0));
  const Seconds begin = wall_time();
  Seconds first_token;
  for (round_ = 0; round_ < job_.batch.output; ++round_) {
    for (int i = 0; i < job_.batch.parts; ++i) {
      const Part own = part(i);
      if (own.count == 0) continue;
      if (round_ == 0) {
        prefill(own);
      } else {
        decode(own, round_);
      }
      if (stage_.last && !stage_.first && round_ + 1 < job_.batch.output) give_back_tokens(own);
    }
    if (round_ == 0) first_token = wall_time() - begin;
  }
  ServedMeasurement m = counted();
  m.first_token = first_token;
  m.end = wall_time() - begin;
  return m;
}

PassKind decode_pass(const ServedJob& job) {
  const std::int64_t mean = job.batch.input + (job.batch.output - 1) / 2;
  return {1, std::min(mean, job.batch.cached() - 1)};
}

std::optional<PassKind> prefill_pass(const ServedJob& job) {
  const std::int64_t largest = ceil_div(job.batch.requests, job.batch.parts);
  if (largest * job.batch.input > job.batch.budget) return std::nullopt;
  return PassKind{job.batch.input, 0};
}

Seconds ServedRank::operators_of(const PassKind& kind, int rounds,
                                 const std::function<void()>& between) {
  const auto hidden = [&](const Part& own) {
    Block x = arena_.take(MemoryKind::activations,
                          at(own.count * kind.tokens * job_.model.hidden) * sizeof(float));
    std::ranges::fill(x.floats(), 0.5F);
    return x;
  };
  forward_.clocked(true);
  forward_.restart_clock();
  Seconds choosing;
  int passes = 0;
  for (int i = 0; i < rounds * job_.batch.parts; ++i) {
    const Part own = part(i % job_.batch.parts);
    if (own.count == 0) continue;
    ++passes;
    between();
    ids_.assign(at(own.count * kind.tokens), 1);
    Block x = layers(own, kind.tokens, kind.before, stage_.first ? Block() : hidden(own));
    if (!stage_.last) continue;
    const Block all = gathered(logits(own, kind.tokens, std::move(x)));
    const Seconds begin = thread_time();
    choose(own, all);
    choosing += thread_time() - begin;
  }
  forward_.clocked(false);
  return (forward_.operators() + choosing) / passes;
}

Seconds ServedRank::collectives_of(const PassKind& kind, int rounds) {
  if (job_.sizes.tp == 1) return {};
  const ServedShape shape{part(job_.batch.parts - 1).count, kind.tokens};  // the largest
  std::vector<float> sum(at(shape.rows() * job_.model.hidden));
  std::vector<float> own(at(shape.sequences * padded_vocab(job_.model.vocab, job_.sizes.tp)));
  const auto sums = [](const LayerProgram& program) {
    return std::ranges::count_if(program.list.nodes, [](const Node& node) {
      const auto* its = std::get_if<Collective>(&node.op);
      return its != nullptr && its->forward == CollectiveKind::all_reduce;
    });
  };
  std::ptrdiff_t count = 0;
  for (const Layer& layer : layers_) count += sums(program(layer.kind, shape));
  tensor_.barrier(control_tag(0));
  const Seconds begin = wall_time();
  for (int i = 0; i < rounds; ++i) {
    for (std::ptrdiff_t k = 0; k < count; ++k)
      tensor_.all_reduce(sum, Reduction::sum, collective_tag(tensor_channel));
    if (stage_.last) tensor_.all_gather(own, collective_tag(tensor_channel));
  }
  return (wall_time() - begin) / rounds;
}

Seconds ServedRank::transfers_of(const PassKind& kind, int rounds) {
  if (job_.sizes.pp == 1) return {};
  const Part own = part(job_.batch.parts - 1);  // the largest
  const std::int64_t rows = own.count * kind.tokens;
  Block hidden = arena_.take(MemoryKind::activations, at(rows * job_.model.hidden) * sizeof(float));
  hidden.clear();
  const Seconds begin = wall_time();
  for (int i = 0; i < rounds; ++i) {
    if (!stage_.first) hidden = receive(own, rows);
    if (!stage_.last) pass_on(own, hidden);
    if (stage_.last) give_back_tokens(own);
    if (stage_.first) take_tokens(own);
  }
  return (wall_time() - begin) / rounds;
}

PassPace ServedRank::timed(const PassKind& kind, int rounds, const std::function<void()>& between) {
  all_.barrier(control_tag(0));
  PassPace pace;
  pace.operators = operators_of(kind, rounds, between);
  all_.barrier(control_tag(0));
  pace.collectives = collectives_of(kind, rounds);
  all_.barrier(control_tag(0));
  pace.transfers = transfers_of(kind, rounds);
  return pace;
}

}  // namespace runtime
