#include "planner/exchange/shell_arithmetic.hpp"

#include <cctype>
#include <charconv>
#include <compare>
#include <string_view>

namespace planner {

namespace {

constexpr int deepest_bracket = 64;

// Recursive descent over comparisons of sums of products of factors, joined by && and ||.
class Arithmetic {
 public:
  Arithmetic(std::string_view text, const VariableText& variable)
      : text_(text), variable_(variable) {}

  std::optional<std::int64_t> value() {
    const auto all = joined();
    skip();
    return at_ == text_.size() ? all : std::nullopt;
  }

 private:
  using Number = std::optional<std::int64_t>;

  void skip() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
  }
  char operation(std::string_view known) {
    skip();
    if (at_ >= text_.size() || known.find(text_[at_]) == std::string_view::npos) return '\0';
    return text_[at_++];
  }
  static Number applied(char operation, Number a, Number b) {
    if (!a || !b) return {};
    std::int64_t result = 0;
    switch (operation) {
      case '+': return __builtin_add_overflow(*a, *b, &result) ? Number() : Number(result);
      case '-': return __builtin_sub_overflow(*a, *b, &result) ? Number() : Number(result);
      case '*': return __builtin_mul_overflow(*a, *b, &result) ? Number() : Number(result);
      default: break;
    }
    if (*b == 0 || *b == -1) return {};
    return operation == '/' ? *a / *b : *a % *b;
  }
  bool take(std::string_view expected) {
    skip();
    if (!text_.substr(at_).starts_with(expected)) return false;
    at_ += expected.size();
    return true;
  }
  // Of two that are joined both have to be known.
  Number joined() {
    Number left = both();
    while (take("||")) {
      const Number right = both();
      left = left && right ? Number(*left != 0 || *right != 0) : Number();
    }
    return left;
  }
  Number both() {
    Number left = comparison();
    while (take("&&")) {
      const Number right = comparison();
      left = left && right ? Number(*left != 0 && *right != 0) : Number();
    }
    return left;
  }
  Number comparison() {
    const Number left = sum();
    for (const std::string_view by : {"==", "!=", ">=", "<=", ">", "<"}) {
      if (!take(by)) continue;
      const Number right = sum();
      if (!left || !right) return {};
      const auto order = *left <=> *right;
      if (by == "==") return order == 0;
      if (by == "!=") return order != 0;
      if (by == ">=") return order >= 0;
      if (by == "<=") return order <= 0;
      return by == ">" ? order > 0 : order < 0;
    }
    return left;
  }
  Number sum() {
    Number left = product();
    while (const char c = operation("+-")) left = applied(c, left, product());
    return left;
  }
  Number product() {
    Number left = factor();
    while (const char c = operation("*/%")) left = applied(c, left, factor());
    return left;
  }
  Number factor() {
    skip();
    if (operation("(") != '\0') {
      if (++depth_ > deepest_bracket) return {};
      const Number inside = joined();
      --depth_;
      return operation(")") != '\0' ? inside : Number();
    }
    operation("$");
    const bool braced = operation("{") != '\0';
    std::size_t end = at_;
    while (end < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[end])) != 0 || text_[end] == '_'))
      ++end;
    const std::string word(text_.substr(at_, end - at_));
    at_ = end;
    if (braced && operation("}") == '\0') return {};
    if (word.empty()) return {};
    if (std::isdigit(static_cast<unsigned char>(word.front())) != 0) return number(word);
    const auto text = variable_(word);
    return text ? number(*text) : Number();
  }
  static Number number(const std::string& text) {
    std::int64_t value = 0;
    const char* const end = text.data() + text.size();
    const auto read = std::from_chars(text.data(), end, value);
    return read.ec == std::errc() && read.ptr == end ? Number(value) : Number();
  }

  std::string_view text_;
  const VariableText& variable_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

std::optional<std::int64_t> shell_arithmetic(const std::string& expression,
                                             const VariableText& variable) {
  return Arithmetic(expression, variable).value();
}

}  // namespace planner
