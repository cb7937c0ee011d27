#include "planner/exchange/lines.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <sstream>

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

std::optional<PrintedDocument> printed_by_cat(const std::string& command) {
  constexpr std::string_view cat = "cat <<";
  const std::size_t first = command.find('\n');
  if (!command.starts_with(cat) || first == std::string::npos) return {};
  const auto trimmed = [](std::string line) {
    std::erase_if(line, [](char c) { return c == ' ' || c == '\t' || c == '\r'; });
    return line;
  };
  std::string end = trimmed(command.substr(cat.size(), first - cat.size()));
  if (end.starts_with('-')) end.erase(0, 1);
  PrintedDocument document;
  document.plain = std::erase_if(end, [](char c) { return c == '\'' || c == '"'; }) > 0;
  std::istringstream lines(command.substr(first + 1));
  for (std::string line; std::getline(lines, line) && trimmed(line) != end;)
    document.text += line + "\n";
  return document;
}

}  // namespace planner
