#include "planner/frameworks/megatron_pattern.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <string_view>

namespace planner {

namespace {

constexpr std::size_t longest_pattern = 100'000;
constexpr int deepest_pattern = 32;

// Reads a pattern letter by letter; `failed` once it is none.
class PatternReader {
 public:
  explicit PatternReader(std::string_view text) : text_(text) {}

  bool done() {
    skip();
    return at_ == text_.size();
  }
  char peek() {
    skip();
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool take(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  std::size_t number() {
    skip();
    std::size_t value = 0;
    const auto read = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (read.ec != std::errc()) return fail();
    at_ = static_cast<std::size_t>(read.ptr - text_.data());
    return value;
  }
  std::size_t fail() {
    failed = true;
    at_ = text_.size();
    return 0;
  }
  // `piece` as many times as "*N" behind it says.
  std::string repeated(const std::string& piece) {
    if (!take('*')) return piece;
    const std::size_t times = number();
    if (times * std::max<std::size_t>(1, piece.size()) > longest_pattern) fail();
    std::string all;
    for (std::size_t i = 0; i < times && !failed; ++i) all += piece;
    return all;
  }
  void grow(std::string& all, const std::string& piece) {
    if (all.size() + piece.size() > longest_pattern) fail();
    if (!failed) all += piece;
  }
  bool failed = false;
  int depth = 0;

 private:
  void skip() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
  }
  std::string_view text_;
  std::size_t at_ = 0;
};

std::string sum_of_lists(PatternReader& in);

// [0,1,1], (sum), with "*N" behind it: a digit a layer.
std::string list_of(PatternReader& in) {
  std::string list;
  if (in.take('(')) {
    if (++in.depth > deepest_pattern) in.fail();
    list = sum_of_lists(in);
    --in.depth;
    if (!in.take(')')) in.fail();
  } else if (in.take('[')) {
    while (!in.failed && !in.take(']')) {
      const std::size_t one = in.number();
      if (one > 1) in.fail();
      in.grow(list, one == 1 ? "1" : "0");
      if (!in.take(',') && in.peek() != ']') in.fail();
    }
  } else {
    in.fail();
  }
  return in.repeated(list);
}

std::string sum_of_lists(PatternReader& in) {
  std::string all = list_of(in);
  while (!in.failed && in.take('+')) in.grow(all, list_of(in));
  return all;
}

// Letters and bars, brackets and repetitions followed.
std::string letters_of(PatternReader& in) {
  std::string all;
  while (!in.failed && !in.done() && in.peek() != ')') {
    const char c = in.peek();
    in.take(c);
    if (c == ',') continue;
    if (c == '(') {
      if (++in.depth > deepest_pattern) in.fail();
      const std::string inside = letters_of(in);
      --in.depth;
      if (!in.take(')')) in.fail();
      in.grow(all, in.repeated(inside));
    } else if (std::string_view("EtmL|").find(c) != std::string_view::npos) {
      in.grow(all, in.repeated(std::string(1, c)));
    } else {
      in.fail();
    }
  }
  return all;
}

}  // namespace

std::optional<std::vector<bool>> layers_with_experts(const std::string& text, int layers) {
  const auto count = static_cast<std::size_t>(std::max(0, layers));
  PatternReader in(text);
  std::vector<bool> sparse(count);
  if (std::isdigit(static_cast<unsigned char>(in.peek())) != 0) {
    const std::size_t every = in.number();
    if (in.failed || !in.done() || every == 0) return {};
    for (std::size_t i = 0; i < count; ++i) sparse[i] = i % every == 0;
    return sparse;
  }
  const std::string digits = sum_of_lists(in);
  if (in.failed || !in.done() || digits.size() != count) return {};
  for (std::size_t i = 0; i < count; ++i) sparse[i] = digits[i] == '1';
  return sparse;
}

std::optional<std::vector<int>> layers_of_layout(const std::string& text) {
  PatternReader in(text);
  const std::string letters = letters_of(in);
  if (in.failed || !in.done() || letters.find('t') == std::string::npos) return {};
  std::vector<int> cells(1, 0);
  for (const char c : letters) {
    if (c == '|') cells.push_back(0);
    if (c == 't') ++cells.back();
  }
  return cells;
}

}  // namespace planner
