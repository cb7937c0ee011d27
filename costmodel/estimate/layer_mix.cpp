#include "costmodel/estimate/layer_mix.hpp"

#include <algorithm>

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

bool recomputes(LayerKind of_tower, const Recompute& recompute, const FineTuning& tuning) {
  return of_tower.part == Part::tower_layer && recompute.granularity != Recomputation::none &&
         recompute.layers == 0 && tuning.trains(static_cast<ModelPiece>(of_tower.tower));
}

int recomputed_layers(const Recompute& recompute, int layers) {
  if (recompute.layers == Recompute::half) return std::min(std::max(1, layers / 2), layers);
  return recompute.layers > 0 ? std::min(recompute.layers, layers) : layers;
}

LayerMix operator+(const LayerMix& a, const LayerMix& b) {
  LayerMix sum = a;
  for (std::size_t i = 0; i < most_blocks; ++i) {
    sum.number[i] += b.number[i];
    sum.again[i] += b.again[i];
  }
  sum.decoder_starts = a.decoder_starts || b.decoder_starts;
  return sum;
}

std::vector<LayerCount> layer_counts_of(const ModelSpec& model, const LayerMix& mix) {
  std::vector<LayerCount> counts;
  for (const Block& block : model.blocks())
    counts.push_back({block, mix.number[counts.size()], mix.again[counts.size()]});
  return counts;
}

LayerKind mtp_layer(const ModelSpec& model) {
  const bool sparse = model.has_experts(model.layers - 1);
  const Mixer last = model.block_at(model.layers - 1).mixer;
  return Block{last == Mixer::sparse ? last : Mixer::attention,
               sparse ? FeedForward::experts : FeedForward::dense};
}

LayerMix layer_mix(const ModelSpec& model, std::int64_t first, int layers,
                   const Recompute& recompute) {
  const int repeated = recomputed_layers(recompute, layers);
  LayerMix mix;
  if (!model.mixes_layers()) {
    mix.number[0] = layers;
    mix.again[0] = repeated;
    return mix;
  }
  if (model.layer_pattern.empty() && model.attention_pattern.empty() && !model.encoder_decoder()) {
    mix.number[1] =
        static_cast<int>(model.moe_layers(first, layers));  // dense ones are listed first
    mix.again[1] = static_cast<int>(model.moe_layers(first, repeated));
    mix.number[0] = layers - mix.number[1];
    mix.again[0] = repeated - mix.again[1];
    return mix;
  }
  const std::vector<Block> blocks = model.blocks();
  for (int i = 0; i < layers; ++i) {
    const auto place = std::ranges::find(blocks, model.block_at(first + i)) - blocks.begin();
    ++mix.number[static_cast<std::size_t>(place)];
    if (i < repeated) ++mix.again[static_cast<std::size_t>(place)];
  }
  mix.decoder_starts = model.encoder_decoder() && first <= model.encoder_layers &&
                       model.encoder_layers < first + layers;
  return mix;
}

std::int64_t tokens_into(const LayerMix& stage, const TrainingSpec& training) {
  if (training.decoder_sequence == 0 || stage.number[encoder_place] > 0 || stage.decoder_starts)
    return training.sequence;
  return training.decoder_sequence + (stage.number[decoder_place] > 0 ? training.sequence : 0);
}

std::int64_t tokens_at_ends(const LayerMix& stage, bool first, bool last,
                            const TrainingSpec& training) {
  const std::int64_t in = first ? 0 : tokens_into(stage, training);
  const std::int64_t both = training.sequence + training.decoder_sequence;
  const std::int64_t out = last ? 0 : stage.number[decoder_place] > 0 ? both : training.sequence;
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
