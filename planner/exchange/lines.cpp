#include "planner/exchange/lines.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

namespace planner {

bool has_line(const std::string& text, std::string_view begin) {
  return text.starts_with(begin) || text.find("\n" + std::string(begin)) != std::string::npos;
}

bool holds_document(const std::string& text, std::string_view word) {
  return text.find(fmt::format("<<'{}'\n", word)) != std::string::npos;
}

std::string here_document(const std::string& text, std::string_view word) {
  const std::string begin = fmt::format("<<'{}'\n", word);
  const std::size_t found = text.find(begin);
  if (found == std::string::npos) return text;
  const std::size_t from = found + begin.size();
  const std::size_t to = text.find(fmt::format("\n{}\n", word), from - 1);
  const auto lines =
      std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(from), '\n');
  return std::string(static_cast<std::size_t>(lines), '\n') +
         text.substr(from, to == std::string::npos ? to : to + 1 - from);
}

}  // namespace planner
