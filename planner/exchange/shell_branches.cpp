#include "planner/exchange/shell_branches.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

namespace planner {

namespace {

constexpr std::size_t most_words = 64;  // of a condition that is decided

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

std::optional<bool> compared_words(const std::vector<std::string>& words) {
  if (words.size() < 2) return !words.empty() && !words[0].empty();
  if (words.size() == 2 && words[0] == "-z") return words[1].empty();
  if (words.size() == 2 && words[0] == "-n") return !words[1].empty();
  if (words.size() != 3) return {};
  const bool equal = words[1] == "=" || words[1] == "==";
  if (!equal && words[1] != "!=") return compared(words[0], words[1], words[2]);
  if (has_wildcard(words[2])) return {};
  return (words[0] == words[2]) == equal;
}

// Where one of the words stands; the number of words where none does.
std::size_t place_of(std::span<const ShellWord> words, std::string_view one,
                     std::string_view other) {
  const auto at = std::ranges::find_if(
      words, [&](const ShellWord& word) { return word.text == one || word.text == other; });
  return static_cast<std::size_t>(at - words.begin());
}

bool is_test(const ShellWords& words) {
  const std::string& first = words[words.front().text == "!" && words.size() > 1 ? 1 : 0].text;
  return first == "[" || first == "[[" || first == "((" || first == "test";
}

}  // namespace

// What stands between the brackets of a test.
ShellBranches::Truth ShellBranches::answer_of(std::span<const ShellWord> words) {
  if (words.size() > most_words || place_of(words, "(", ")") < words.size()) return Truth::maybe;
  if (const auto at = place_of(words, "||", "-o"); at < words.size())
    return std::max(answer_of(words.first(at)), answer_of(words.subspan(at + 1)));
  if (const auto at = place_of(words, "&&", "-a"); at < words.size())
    return std::min(answer_of(words.first(at)), answer_of(words.subspan(at + 1)));
  if (words.size() > 1 && words.front().text == "!") return negated(answer_of(words.subspan(1)));
  std::vector<std::string> texts;
  for (const auto& word : words) {
    if (!word.unknown.empty()) return Truth::maybe;
    texts.push_back(word.text);
  }
  const auto answer = compared_words(texts);
  return !answer ? Truth::maybe : *answer ? Truth::yes : Truth::no;
}

ShellBranches::Truth ShellBranches::truth_of(std::span<const ShellWord> words) {
  if (words.size() > most_words) return Truth::maybe;
  const std::string &first = words.front().text, &last = words.back().text;
  if (words.size() > 1 && first == "!") return negated(truth_of(words.subspan(1)));
  if (words.size() == 1 && first == "true") return Truth::yes;
  if (words.size() == 1 && first == "false") return Truth::no;
  if (first == "((" && words.size() == 2 && words.back().unknown.empty())
    return last == "0" ? Truth::no : Truth::yes;
  if (first == "test") return answer_of(words.subspan(1));
  const bool closed = (first == "[" && last == "]") || (first == "[[" && last == "]]");
  return closed ? answer_of(words.subspan(1, words.size() - 2)) : Truth::maybe;
}

ShellBranches::Truth ShellBranches::negated(Truth truth) {
  return truth == Truth::yes ? Truth::no : truth == Truth::no ? Truth::yes : Truth::maybe;
}

// Whether the next command of a list runs, as those before it decide.
ShellBranches::Truth ShellBranches::joint_truth(const Frame& frame) {
  if (frame.joint == '&') return frame.listed;
  return frame.joint == '|' ? negated(frame.listed) : Truth::yes;
}

void ShellBranches::join(Frame& frame, Truth truth) {
  frame.listed = frame.joint == '&'   ? std::min(frame.listed, truth)
                 : frame.joint == '|' ? std::max(frame.listed, truth)
                                      : truth;
  frame.joint = '\0';
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

// What is begun is one of the commands of a list around it, which succeeds.
void ShellBranches::begin(Kind kind) {
  Frame& around = frames_.back();
  const Frame frame{.kind = kind,
                    .outer = run(),
                    .doubted = around.doubted || joint_truth(around) == Truth::maybe,
                    .asking = kind != Kind::group};
  join(around, Truth::yes);
  frames_.push_back(frame);
}

void ShellBranches::keyword(std::string_view word) {
  if (word == "if") return begin(Kind::condition);
  if (word == "case") return begin(Kind::choice);
  if (word == "{") return begin(Kind::group);
  if (frames_.size() == 1) return;
  Frame& frame = frames_.back();
  const bool group = frame.kind == Kind::group;
  if (word == (group ? "}" : frame.kind == Kind::choice ? "esac" : "fi")) {
    frames_.pop_back();
  } else if (frame.kind != Kind::condition) {
    return;
  } else if (word == "elif") {
    frame.asking = true;
    frame.listed = Truth::maybe;
  } else if (word == "then") {
    enter(frame, frame.listed);
  } else if (word == "else") {
    enter(frame, Truth::yes);
  }
}

bool ShellBranches::take(const ShellWords& command, char end, char joint, bool assigns) {
  Frame& frame = frames_.back();
  if (frame.kind == Kind::choice && frame.asking) {
    if (!command.empty()) take_choice(frame, command, end);
    return true;
  }
  if (joint == '-') return false;  // what a pipe begins with belongs to what it ends with
  if (command.empty() && !assigns) {
    if (joint != '\0') frame.joint = joint;  // after what ends with a keyword
    return false;
  }
  const bool doubted = frame.doubted || joint_truth(frame) == Truth::maybe;
  undecided_ = undecided_ || (assigns && doubted && run());
  // Of `[ ... ] && command || other` the other one is for what the test rules out.
  const bool succeeds =
      command.empty() || (frame.joint == '&' && !frame.asking && !is_test(command));
  join(frame, succeeds ? Truth::yes : truth_of(command));
  frame.joint = joint;
  return !command.empty() && command.front().text == "((";  // others of a condition run as well
}

void ShellBranches::take_choice(Frame& frame, const ShellWords& command, char end) {
  if (!frame.subject.empty()) return take_pattern(frame, command, end);
  const auto in = std::ranges::find(command, "in", &ShellWord::text);
  frame.subject.assign(command.begin(), in);
  if (frame.subject.empty()) frame.subject.emplace_back();  // an empty word
  if (in != command.end() && in + 1 != command.end())
    take_pattern(frame, ShellWords(in + 1, command.end()), end);
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
  if (frames_.back().kind == Kind::choice) frames_.back().asking = true;
}

bool ShellBranches::run() const {
  const Frame& last = frames_.back();
  return last.outer && (last.asking || last.now != Truth::no) && joint_truth(last) != Truth::no;
}

}  // namespace planner
