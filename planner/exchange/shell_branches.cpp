#include "planner/exchange/shell_branches.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

namespace planner {

namespace {

std::optional<long long> integer_of(std::string_view text) {
  long long value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  return read.ec == std::errc() && read.ptr == text.data() + text.size() ? std::optional(value)
                                                                         : std::nullopt;
}

bool has_wildcard(const std::string& text) {
  return text.find_first_of("*?[") != std::string::npos;
}

// Of two numbers, by -eq and its like; nothing for other words.
std::optional<bool> compared(const std::string& left, std::string_view by,
                             const std::string& right) {
  const auto a = integer_of(left), b = integer_of(right);
  if (!a || !b) return {};
  if (by == "-eq") return *a == *b;
  if (by == "-ne") return *a != *b;
  if (by == "-gt") return *a > *b;
  if (by == "-ge") return *a >= *b;
  if (by == "-lt") return *a < *b;
  if (by == "-le") return *a <= *b;
  return {};
}

std::optional<bool> answer_of(const std::vector<std::string>& words) {
  if (words.size() == 2 && words[0] == "-z") return words[1].empty();
  if (words.size() == 2 && words[0] == "-n") return !words[1].empty();
  if (words.size() != 3) return {};
  const bool equal = words[1] == "=" || words[1] == "==";
  if (!equal && words[1] != "!=") return compared(words[0], words[1], words[2]);
  if (has_wildcard(words[2])) return {};
  return (words[0] == words[2]) == equal;
}

}  // namespace

ShellBranches::Truth ShellBranches::truth_of(const ShellWords& words) {
  std::vector<std::string> texts;
  for (const auto& word : words) {
    if (!word.unknown.empty()) return Truth::maybe;
    texts.push_back(word.text);
  }
  if (texts.size() == 1 && texts[0] == "true") return Truth::yes;
  if (texts.size() == 1 && texts[0] == "false") return Truth::no;
  if (texts.size() < 3) return Truth::maybe;
  const bool closed = (texts.front() == "[" && texts.back() == "]") ||
                      (texts.front() == "[[" && texts.back() == "]]");
  if (!closed) return Truth::maybe;
  const auto answer = answer_of({texts.begin() + 1, texts.end() - 1});
  return !answer ? Truth::maybe : *answer ? Truth::yes : Truth::no;
}

// After a branch that runs none does; after one that may run none is sure to.
void ShellBranches::enter(Frame& frame, Truth truth) {
  frame.asking = false;
  frame.now = frame.taken ? Truth::no : truth == Truth::yes && frame.perhaps ? Truth::maybe : truth;
  if (truth == Truth::yes) frame.taken = true;
  if (truth == Truth::maybe && !frame.taken) {
    frame.perhaps = true;
    if (run()) undecided_ = true;
  }
}

void ShellBranches::keyword(std::string_view word) {
  if (word == "if" || word == "case") {
    frames_.push_back({.choice = word == "case", .outer = run()});
    return;
  }
  if (frames_.empty()) return;
  Frame& frame = frames_.back();
  if (word == (frame.choice ? "esac" : "fi")) {
    frames_.pop_back();
  } else if (frame.choice) {
    return;
  } else if (word == "elif") {
    frame.asking = true;
    frame.tests.clear();
  } else if (word == "then") {
    enter(frame, frame.tests.size() == 1 ? truth_of(frame.tests.front()) : Truth::maybe);
  } else if (word == "else") {
    enter(frame, Truth::yes);
  }
}

bool ShellBranches::take(const ShellWords& command, char end) {
  if (frames_.empty() || !frames_.back().asking) return false;
  Frame& frame = frames_.back();
  if (!frame.choice) {
    frame.tests.push_back(command);
    return false;  // it runs as well: `if torchrun ...; then`
  }
  if (!frame.subject.empty()) {
    take_pattern(frame, command, end);
    return true;
  }
  const auto in = std::ranges::find(command, "in", &ShellWord::text);
  frame.subject.assign(command.begin(), in);
  if (frame.subject.empty()) frame.subject.emplace_back();  // an empty word
  if (in != command.end() && in + 1 != command.end())
    take_pattern(frame, ShellWords(in + 1, command.end()), end);
  return true;
}

void ShellBranches::take_pattern(Frame& frame, ShellWords words, char end) {
  std::ranges::move(words, std::back_inserter(frame.pattern));
  if (end != ')') return;
  const ShellWord& subject = frame.subject.front();
  Truth truth = Truth::no;
  for (const auto& one : std::exchange(frame.pattern, {})) {
    const bool known = subject.unknown.empty() && one.unknown.empty();
    if (one.text == "*" || (known && one.text == subject.text)) {
      truth = Truth::yes;
      break;
    }
    if (!known || has_wildcard(one.text)) truth = Truth::maybe;
  }
  enter(frame, truth);
}

void ShellBranches::end_choice() {
  if (!frames_.empty() && frames_.back().choice) frames_.back().asking = true;
}

bool ShellBranches::run() const {
  if (frames_.empty()) return true;
  const Frame& last = frames_.back();
  return last.outer && (last.asking || last.now != Truth::no);
}

}  // namespace planner
