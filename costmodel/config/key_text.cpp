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

std::string example_entry(std::string_view name, const std::string& allowed, bool first) {
  const std::string word = allowed.substr(0, allowed.find(", "));
  const bool named = word.size() < allowed.size() && word.find_first_of(" {[<") == word.npos;
  return fmt::format("{}{}: {}", first ? "" : ", ", name, named ? word : "...");
}

}  // namespace costmodel
