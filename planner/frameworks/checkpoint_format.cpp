#include "planner/frameworks/checkpoint_format.hpp"

#include <algorithm>

#include "costmodel/base/letter_case.hpp"
#include "planner/frameworks/framework_words.hpp"

namespace planner {

namespace {

NamedFormat format_of(std::string_view weights, std::string_view word) {
  return {weights == "none" ? "" : std::string(weights), std::string(word)};
}

}  // namespace

std::optional<NamedFormat> format_in_name(std::string_view name) {
  const std::string small = costmodel::lower_case(std::string(name));
  for (const auto& [word, weights] : framework_words("checkpoints").words)
    if (small.find(word) != std::string::npos) return format_of(weights, word);
  return std::nullopt;
}

std::optional<NamedFormat> format_of_quantization(std::string_view word, std::string_view name) {
  const std::string small = costmodel::lower_case(std::string(word));
  const auto& rows = framework_words("checkpoints").rows;
  const auto row = std::ranges::find_if(rows, [&](const auto& one) { return one[0] == small; });
  if (row == rows.end()) return format_in_name(small);
  if (row->back() == "named")
    if (auto named = format_in_name(name); named && !named->weights.empty()) return named;
  return format_of((*row)[1], (*row)[0]);
}

}  // namespace planner
