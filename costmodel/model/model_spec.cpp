#include "costmodel/model/model_spec.hpp"

#include <algorithm>

#include "costmodel/base/units.hpp"

namespace costmodel {

std::int64_t ModelSpec::layers_of(char letter, std::int64_t first, std::int64_t count) const {
  const std::string_view part =
      std::string_view(layer_pattern)
          .substr(static_cast<std::size_t>(first), static_cast<std::size_t>(count));
  return std::count(part.begin(), part.end(), letter);
}

char ModelSpec::attention_at(std::int64_t layer) const {
  if (attention_pattern.empty()) return sliding_window > 0 ? 'S' : 'F';
  return attention_pattern[static_cast<std::size_t>(layer) % attention_pattern.size()];
}

std::int64_t ModelSpec::attention_layers(char letter, std::int64_t first,
                                         std::int64_t count) const {
  std::int64_t found = 0;
  for (std::int64_t i = first; i < first + count; ++i) found += attention_at(i) == letter ? 1 : 0;
  return found;
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
