#include "costmodel/estimate/layer_mix.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <string>
#include <string_view>

namespace costmodel {

Recomputed region_of(const Recompute& recompute) {
  static_assert(bit_of(RecomputeModule::core_attn) == 1 &&
                bit_of(RecomputeModule::shared_experts) == 64);  // the bits of Region
  switch (recompute.granularity) {
    case Recomputation::none: return Recomputed::nothing;
    case Recomputation::selective:
      return recompute.modules == 0 ? Recomputed::attention_core : Recomputed{recompute.modules};
    case Recomputation::full: return Recomputed::everything;
  }
  return Recomputed::nothing;
}

Recompute recompute_as_run(const Recompute& asked, const StackMemory& memory) {
  const bool halves = memory.selective_half && asked.granularity == Recomputation::selective;
  return halves ? Recompute{Recomputation::full, Recompute::half} : asked;
}

int recomputed_layers(const Recompute& recompute, int layers) {
  if (recompute.layers == Recompute::half) return std::min(std::max(1, layers / 2), layers);
  return recompute.layers > 0 ? std::min(recompute.layers, layers) : layers;
}

namespace {

constexpr std::string_view pattern_letters = "M*-EG";

constexpr std::array pattern_kinds{
    // in the order of pattern_letters
    LayerGroup{LayerKind::scan, &LayerMix::scan, &LayerMix::scan_again},
    LayerGroup{LayerKind::attention, &LayerMix::attention, &LayerMix::attention_again},
    LayerGroup{LayerKind::mlp, &LayerMix::mlp, &LayerMix::mlp_again},
    LayerGroup{LayerKind::experts, &LayerMix::experts, &LayerMix::experts_again},
    LayerGroup{LayerKind::delta_net, &LayerMix::delta_net, &LayerMix::delta_net_again}};

// The kinds of an attention pattern: by letter, and without and with experts.
constexpr std::string_view attention_letters = "FSD";
constexpr std::array attention_kinds{
    LayerGroup{LayerKind::block, &LayerMix::dense, &LayerMix::dense_again},
    LayerGroup{LayerKind::moe, &LayerMix::moe, &LayerMix::moe_again},
    LayerGroup{LayerKind::window, &LayerMix::window, &LayerMix::window_again},
    LayerGroup{LayerKind::window_moe, &LayerMix::window_moe, &LayerMix::window_moe_again},
    LayerGroup{LayerKind::delta, &LayerMix::delta, &LayerMix::delta_again},
    LayerGroup{LayerKind::delta_moe, &LayerMix::delta_moe, &LayerMix::delta_moe_again}};
static_assert(attention_kinds.size() <= most_layer_groups &&
              pattern_kinds.size() <= most_layer_groups);

// Every subset of kinds, one bit a kind.
template <std::size_t n>
constexpr auto subsets_of(const std::array<LayerGroup, n>& kinds) {
  std::array<std::array<LayerGroup, n>, std::size_t{1} << n> all{};
  for (std::size_t set = 0; set < all.size(); ++set) {
    std::size_t taken = 0;
    for (std::size_t i = 0; i < n; ++i)
      if ((set >> i & 1U) != 0) all[set][taken++] = kinds[i];
  }
  return all;
}
constexpr auto pattern_subsets = subsets_of(pattern_kinds);
constexpr auto attention_subsets = subsets_of(attention_kinds);

// Of attention_kinds: that of a layer of the model.
std::size_t attention_kind(const ModelSpec& model, std::int64_t layer) {
  const std::size_t letter = attention_letters.find(model.attention_at(layer));
  return 2 * letter + (model.has_experts(layer) ? 1 : 0);
}

std::span<const LayerGroup> attention_groups(const ModelSpec& model) {
  std::size_t set = 0;
  for (std::int64_t i = 0; i < model.layers; ++i) set |= std::size_t{1} << attention_kind(model, i);
  const std::span<const LayerGroup> kinds(attention_subsets[set]);
  return kinds.first(static_cast<std::size_t>(std::popcount(set)));
}

LayerMix attention_mix(const ModelSpec& model, std::int64_t first, int layers, int again) {
  LayerMix mix;
  for (int i = 0; i < layers; ++i) {
    const LayerGroup& group = attention_kinds[attention_kind(model, first + i)];
    ++(mix.*group.number);
    if (i < again) ++(mix.*group.again);
  }
  return mix;
}

std::span<const LayerGroup> pattern_groups(const ModelSpec& model) {
  std::size_t set = 0;
  for (std::size_t i = 0; i < pattern_letters.size(); ++i)
    if (model.layer_pattern.find(pattern_letters[i]) != std::string::npos) set |= 1U << i;
  const std::span<const LayerGroup> kinds(pattern_subsets[set]);
  return kinds.first(static_cast<std::size_t>(std::popcount(set)));
}

LayerMix pattern_mix(const ModelSpec& model, std::int64_t first, int layers, int again) {
  LayerMix mix;
  for (std::size_t i = 0; i < pattern_letters.size(); ++i) {
    const LayerGroup& group = pattern_kinds[i];
    const auto count = [&](int of) {
      return static_cast<int>(model.layers_of(pattern_letters[i], first, of));
    };
    mix.*group.number = count(layers);
    mix.*group.again = count(again);
  }
  return mix;
}

}  // namespace

std::span<const LayerGroup> layer_groups(const ModelSpec& model) {
  static constexpr std::array groups{
      LayerGroup{LayerKind::block, &LayerMix::dense, &LayerMix::dense_again},
      LayerGroup{LayerKind::moe, &LayerMix::moe, &LayerMix::moe_again},
      LayerGroup{LayerKind::encoder, &LayerMix::encoder, &LayerMix::encoder_again},
      LayerGroup{LayerKind::decoder, &LayerMix::decoder, &LayerMix::decoder_again}};
  const std::span all(groups);
  if (!model.layer_pattern.empty()) return pattern_groups(model);
  if (!model.attention_pattern.empty()) return attention_groups(model);
  if (model.encoder_decoder()) return all.subspan(2, 2);
  const std::int64_t sparse = model.moe_layers(0, model.layers);
  if (sparse > 0 && sparse == model.layers) return all.subspan(1, 1);
  return all.first(sparse > 0 ? 2 : 1);
}

LayerKind mtp_layer(const ModelSpec& model) {
  return model.has_experts(model.layers - 1) ? LayerKind::moe : LayerKind::block;
}

namespace {

LayerMix stack_mix(const ModelSpec& model, std::int64_t first, int layers, int again) {
  const auto encoder = [&](int count) {
    const std::int64_t left = std::max<std::int64_t>(0, model.encoder_layers - first);
    return static_cast<int>(std::min<std::int64_t>(left, count));
  };
  LayerMix mix;
  mix.encoder = encoder(layers);
  mix.decoder = layers - mix.encoder;
  mix.encoder_again = encoder(again);
  mix.decoder_again = again - mix.encoder_again;
  mix.decoder_starts = first <= model.encoder_layers && model.encoder_layers < first + layers;
  return mix;
}

}  // namespace

LayerMix layer_mix(const ModelSpec& model, std::int64_t first, int layers,
                   const Recompute& recompute) {
  const int again = recomputed_layers(recompute, layers);
  if (!model.layer_pattern.empty()) return pattern_mix(model, first, layers, again);
  if (!model.attention_pattern.empty()) return attention_mix(model, first, layers, again);
  if (model.encoder_decoder()) return stack_mix(model, first, layers, again);
  const auto moe = static_cast<int>(model.moe_layers(first, layers));
  const auto moe_again = static_cast<int>(model.moe_layers(first, again));
  return {layers - moe, moe, again - moe_again, moe_again};
}

std::int64_t tokens_into(const LayerMix& stage, const TrainingSpec& training) {
  if (training.decoder_sequence == 0 || stage.encoder > 0 || stage.decoder_starts)
    return training.sequence;
  return training.decoder_sequence + (stage.decoder > 0 ? training.sequence : 0);
}

std::int64_t tokens_at_ends(const LayerMix& stage, bool first, bool last,
                            const TrainingSpec& training) {
  const std::int64_t in = first ? 0 : tokens_into(stage, training);
  const std::int64_t both = training.sequence + training.decoder_sequence;
  const std::int64_t out = last ? 0 : stage.decoder > 0 ? both : training.sequence;
  return std::max(in, out);
}

double vocabulary_table(const ModelSpec& model, int tp) {
  const std::int64_t rows = padded_vocab(model.vocab, tp) / tp;
  return static_cast<double>(rows * model.embedding_width());
}

double shared_tables(const ModelSpec& model, int tp) {
  const bool both = model.encoder_decoder() && model.positions == Positions::learned;
  return vocabulary_table(model, tp) +
         (both ? static_cast<double>(model.max_positions * model.hidden) : 0);
}

}  // namespace costmodel
