#include "costmodel/config/key_text.hpp"

#include <fmt/format.h>

namespace costmodel {

std::string whole_text(IntegerRange range) {
  return fmt::format("{} to {}", format_integer(range.least), format_integer(range.most));
}

std::string number_text(Dimension dimension, double least, double most) {
  const auto unit = base_unit(dimension);
  return fmt::format("{:g} to {:g}{}{}", least, most, unit.empty() ? "" : " ", unit);
}

std::string words_text(std::span<const std::string_view> words) {
  return fmt::format("{}", fmt::join(words, ", "));
}

}  // namespace costmodel
