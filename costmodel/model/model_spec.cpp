#include "costmodel/model/model_spec.hpp"

#include <algorithm>

#include "costmodel/base/units.hpp"

namespace costmodel {

std::int64_t ModelSpec::layers_of(char letter, std::int64_t first, std::int64_t count) const {
  const std::string_view part =
      std::string_view(layer_pattern)
          .substr(static_cast<std::size_t>(first), static_cast<std::size_t>(count));
  return std::ranges::count(part, letter);
}

Block ModelSpec::block_at(std::int64_t layer) const {
  if (!layer_pattern.empty()) {
    const char letter = layer_pattern[static_cast<std::size_t>(layer)];
    return std::ranges::find(pattern_letters(), letter, &PatternLetter::letter)->block;
  }
  if (kind == ModelKind::mamba) return {Mixer::scan, FeedForward::none};
  if (encoder_decoder())
    return {layer < encoder_layers ? Mixer::encoder : Mixer::decoder, FeedForward::dense};
  const FeedForward own = has_experts(layer) ? FeedForward::experts : FeedForward::dense;
  if (attention_pattern.empty()) return {Mixer::attention, own};
  return {std::ranges::find(mixer_rows(), attention_at(layer), &MixerRow::letter)->mixer, own};
}

std::vector<Block> ModelSpec::blocks() const {
  std::vector<Block> found;
  if (!layer_pattern.empty()) {
    for (const PatternLetter& row : pattern_letters())
      if (layer_pattern.find(row.letter) != std::string::npos) found.push_back(row.block);
    return found;
  }
  if (attention_pattern.empty() && !mixes_layers()) return {block_at(0)};
  for (std::int64_t i = 0; i < layers; ++i) {
    const Block own = block_at(i);
    const auto place = std::ranges::lower_bound(found, own);
    if (place == found.end() || *place != own) found.insert(place, own);
  }
  return found;
}

bool ModelSpec::recurrent() const {
  const auto keeps_state = [](char letter) {
    return std::ranges::find(mixer_rows(), letter, &MixerRow::letter)->recurrent;
  };
  return state_size > 0 || linear_num_value_heads > 0 ||
         std::ranges::any_of(attention_pattern, keeps_state);
}

const char* ModelSpec::unpacked() const {
  return encoder_decoder()            ? "an encoder-decoder model"
         : sliding_window > 0         ? "a sliding window"
         : attention_chunk > 0        ? "chunks of attention"
         : index_heads > 0            ? "an indexer"
         : state_size > 0             ? "state-space layers"
         : linear_num_value_heads > 0 ? "a delta net"
         : recurrent()                ? "a recurrence"
                                      : nullptr;
}

std::string ModelSpec::heads_text() const {
  const std::string all = std::to_string(heads);
  return window_heads > 0 ? all + " and " + std::to_string(window_heads) : all;
}

char ModelSpec::attention_at(std::int64_t layer) const {
  if (attention_pattern.empty()) return sliding_window > 0 ? 'S' : 'F';
  return attention_pattern[static_cast<std::size_t>(layer) % attention_pattern.size()];
}

std::int64_t ModelSpec::moe_layers(std::int64_t first, std::int64_t count) const {
  if (experts == 0) return 0;
  if (!layer_pattern.empty()) return layers_of('E', first, count);
  const auto before = [this](std::int64_t end) {  // of moe_offset + n moe_every below `end`
    return end > moe_offset ? ceil_div(end - moe_offset, moe_every) : 0;
  };
  const std::int64_t from = std::max(first, first_dense_layers), to = first + count;
  return to > from ? before(to) - before(from) : 0;
}

}  // namespace costmodel
