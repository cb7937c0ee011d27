#include "planner/exchange/shell_fields.hpp"

#include <algorithm>
#include <utility>

namespace planner {

using namespace costmodel;

namespace {

constexpr std::size_t longest_field = std::size_t{1} << 20;
constexpr std::size_t longest_script = std::size_t{32} << 20;  // with everything expanded

}  // namespace

void ShellBudget::spend(std::size_t characters, const Mark& mark) {
  spent += characters;
  if (spent > longest_script)
    throw ConfigError(mark, "the script grows beyond 32 MiB as it is expanded", "shorten it");
}

ShellFields::ShellFields(Mark begin, ShellBudget& budget) : budget_(budget) {
  current_.mark = std::move(begin);
}

void ShellFields::add(std::string_view piece) {
  current_.text += piece;
  open_ = true;
  budget_.spend(piece.size() + 1, current_.mark);
  if (current_.text.size() > longest_field)
    throw ConfigError(current_.mark, "a word grows beyond 1 MiB", "shorten the script");
}

void ShellFields::add_unknown(const std::string& what) {
  add(unknown_begin + what + unknown_end);
  current_.unknown = what;
}

std::string without_unknown(const std::string& text) {
  std::string known;
  bool inside = false;
  for (const char c : text) {
    inside = inside || c == unknown_begin;
    if (!inside) known += c;
    inside = inside && c != unknown_end;
  }
  return known;
}

std::vector<std::string> read_words(const std::string& line, const std::string& separators,
                                    std::size_t most) {
  std::vector<std::string> words;
  for (std::size_t at = 0; at < line.size() && words.size() < most;) {
    const std::size_t end = words.size() + 1 == most
                                ? line.size()
                                : std::min(line.find_first_of(separators, at), line.size());
    words.push_back(line.substr(at, end - at));
    at = std::min(line.find_first_not_of(separators, end), line.size());
  }
  return words;
}

void ShellFields::close() {
  if (open_) done_.push_back(current_);
  current_ = {"", current_.mark, ""};
  open_ = false;
}

void ShellFields::add_value(const ShellWords& value, bool quoted, bool items) {
  budget_.spend(value.size(), current_.mark);
  for (std::size_t i = 0; i < value.size(); ++i) {
    if (i > 0 && quoted && !items) add(' ');
    if (i > 0 && (!quoted || items)) close();
    if (!open_) current_.mark = value[i].mark;
    if (quoted) {
      add(value[i].text);
      if (!value[i].unknown.empty()) current_.unknown = value[i].unknown;
      continue;
    }
    const std::string& text = value[i].text;
    for (std::size_t at = 0; at < text.size(); ++at) {
      const char c = text[at];
      if (c == unknown_begin) {
        const std::size_t end = std::min(text.find(unknown_end, at), text.size());
        add_unknown(text.substr(at + 1, end - at - 1));
        at = end;
      } else if (c == ' ' || c == '\t' || c == '\r' || c == '\n') {
        close();
      } else {
        add(c);
      }
    }
  }
  if (quoted && !items) open_ = true;
}

ShellWords ShellFields::take() {
  close();
  return std::move(done_);
}

}  // namespace planner
