#include "planner/frameworks/python_settings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "costmodel/base/escape.hpp"
#include "costmodel/base/path.hpp"

namespace planner {

using namespace costmodel;

namespace {

constexpr std::size_t deepest = 64;  // brackets in brackets
constexpr std::string_view converter_end = "Converter", config_class = ".Config";

// A name (dots included), a number, a string without its quotes, or a single character.
struct Token {
  enum class Kind { name, number, string, sign, line, end };
  Kind kind = Kind::end;
  std::string text;
  Mark mark;
};

class Lexer {
 public:
  Lexer(const std::string& text, const std::string& file) : text_(text), mark_{file, 1, 1} {}

  std::vector<Token> tokens() {
    std::vector<Token> list;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      const Mark mark = mark_;
      if (c == '#') {
        while (at_ < text_.size() && text_[at_] != '\n') step();
      } else if (c == '\n') {
        step();
        list.push_back({Token::Kind::line, "", mark});
      } else if (std::isspace(static_cast<unsigned char>(c)) != 0) {
        step();
      } else if (c == '"' || c == '\'') {
        list.push_back({Token::Kind::string, string_from(c), mark});
      } else if (is_name(c)) {
        const bool number = std::isdigit(static_cast<unsigned char>(c)) != 0;
        list.push_back({number ? Token::Kind::number : Token::Kind::name, name(), mark});
      } else {
        step();
        list.push_back({Token::Kind::sign, std::string(1, c), mark});
      }
    }
    list.push_back({Token::Kind::end, "", mark_});
    return list;
  }

 private:
  static bool is_name(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.';
  }
  void step() {
    if (text_[at_++] == '\n') {
      ++mark_.line;
      mark_.column = 1;
    } else {
      ++mark_.column;
    }
  }
  std::string name() {
    std::string name;
    for (; at_ < text_.size() && is_name(text_[at_]); step()) name += text_[at_];
    return name;
  }
  // With one quote or three; escapes stay as they are written.
  std::string string_from(char quote) {
    const Mark start = mark_;
    const std::string three(3, quote);
    const std::string end = text_.compare(at_, 3, three) == 0 ? three : std::string(1, quote);
    for (std::size_t i = 0; i < end.size(); ++i) step();
    std::string inside;
    while (at_ < text_.size() && text_.compare(at_, end.size(), end) != 0) {
      if (end.size() == 1 && text_[at_] == '\n') break;
      if (text_[at_] == '\\' && at_ + 1 < text_.size()) {
        inside += text_[at_];
        step();
      }
      inside += text_[at_];
      step();
    }
    if (at_ >= text_.size() || text_.compare(at_, end.size(), end) != 0)
      throw ConfigError(start, "the quote is not closed", "close it");
    for (std::size_t i = 0; i < end.size(); ++i) step();
    return inside;
  }

  const std::string& text_;
  std::size_t at_ = 0;
  Mark mark_;
};

// The sections whose settings are keyword arguments of a class.
constexpr std::array<std::pair<std::string_view, std::string_view>, 4> classes{
    {{"TrainingConfig", "training"},
     {"ParallelismConfig", "parallelism"},
     {"ActivationCheckpointConfig", "activation_checkpoint"},
     {"CompileConfig", "compile"}}};

constexpr std::array<std::string_view, 4> section_names{"training", "parallelism",
                                                        "activation_checkpoint", "compile"};

std::string_view section_of_class(std::string_view name) {
  name = name.substr(name.rfind('.') + 1);
  for (const auto& [of, section] : classes)
    if (name == of) return section;
  return {};
}

// "config.training.steps" without its object; empty when it names no section.
std::string field_of(const std::string& name) {
  const std::size_t dot = name.find('.');
  if (dot == std::string::npos) return {};
  const std::string field = name.substr(dot + 1);
  const bool known = std::ranges::any_of(section_names, [&](std::string_view section) {
    return field == section || field.starts_with(std::string(section) + ".");
  });
  return known ? field : std::string();
}

class Reader {
 public:
  // `name`: of the model's package, where the file names no other.
  Reader(std::vector<Token> tokens, std::string name)
      : tokens_(std::move(tokens)), name_(std::move(name)) {}

  std::vector<SetField> read() {
    while (now().kind != Token::Kind::end) statement();
    if (!open_.empty()) throw ConfigError(open_.back().mark, "is not closed", "close it");
    return std::move(fields_);
  }

 private:
  struct Bracket {
    std::string call;  // the name before it; empty for none
    char sign;
    Mark mark;
  };

  const Token& now() const { return tokens_[at_]; }
  const Token& next(std::size_t by = 1) const {
    return tokens_[std::min(at_ + by, tokens_.size() - 1)];
  }
  static bool is(const Token& token, std::string_view sign) {
    return token.kind == Token::Kind::sign && token.text == sign;
  }

  void statement() {
    const Token token = now();
    if (token.kind == Token::Kind::sign) return bracket(token);
    if (token.kind != Token::Kind::name) {
      ++at_;
      return;
    }
    if (is(next(), "(")) return call(token);
    if (is(next(), "=") && !is(next(2), "=")) return assignment(token);
    constexpr std::string_view package = "torchtitan.models.", shared = "common";
    if (token.text.starts_with(package) && !token.text.substr(package.size()).starts_with(shared)) {
      name_ = token.text.substr(package.size());
      name_ = name_.substr(0, name_.find('.'));
    }
    ++at_;
  }

  void bracket(const Token& token) {
    ++at_;
    const char sign = token.text.front();
    if (sign == '(' || sign == '[' || sign == '{') return push({"", sign, token.mark});
    if (sign != ')' && sign != ']' && sign != '}') return;
    if (open_.empty()) throw ConfigError(token.mark, "closes no bracket", "remove it");
    open_.pop_back();
  }

  void push(Bracket bracket) {
    if (open_.size() == deepest)
      throw ConfigError(bracket.mark, "is nested too deeply", "keep it within 64 brackets");
    open_.push_back(std::move(bracket));
  }

  static bool builds_model(std::string_view call) {
    const std::string_view last = call.substr(call.rfind('.') + 1);
    return last == "build_model_config" || last == "model_registry";
  }

  void call(const Token& name) {
    at_ += 2;
    add_converter(name);
    push({name.text, '(', name.mark});
    const std::string last = name.text.substr(name.text.rfind('.') + 1);
    const bool builds = builds_model(name.text);
    if (builds) {
      // Another model is built without what the one before it was built with.
      std::erase_if(fields_, [](const SetField& set) {
        const bool named = set.field == "model.name" || set.field == "model.flavor";
        return (set.field.starts_with("model.") && !named) || set.field.starts_with("converter.");
      });
      skip_lines();
    }
    if (builds && now().kind == Token::Kind::string) {
      model(name_, now().text, name.mark);
    } else if (const std::size_t bar = last.rfind('_');
               bar != std::string::npos &&
               (last.starts_with("llama3_") || last.starts_with("qwen3_") ||
                last.starts_with("deepseek_v3_"))) {
      std::string flavor = last.substr(bar + 1);
      std::ranges::transform(flavor, flavor.begin(),
                             [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
      model(last.substr(0, bar), flavor, name.mark);
    }
  }

  // One of the list of converters that a model is built with: "MXFP8LinearConverter.Config(".
  void add_converter(const Token& name) {
    if (!name.text.ends_with(config_class)) return;
    std::string kind = name.text.substr(0, name.text.size() - config_class.size());
    kind.erase(0, kind.rfind('.') + 1);
    const bool listed = std::ranges::any_of(
        open_, [](const Bracket& bracket) { return builds_model(bracket.call); });
    if (!listed || !kind.ends_with(converter_end)) return;
    const auto list = std::ranges::find(fields_, "model.converters", &SetField::field);
    if (list == fields_.end()) {
      fields_.push_back({"model.converters", {kind}, name.mark, ""});
    } else {
      list->values.push_back(kind);
    }
  }

  // Of an argument of the call that builds the model, or of a converter in it; empty: of neither.
  std::string model_field(const std::string& argument) const {
    const std::string& call = open_.back().call;
    const bool listed = argument == "converters" && is(now(), "[");
    if (builds_model(call)) return listed ? "" : "model." + argument;
    const bool chooses = argument == "fqns" || argument == "filter_fqns";
    const std::string end = fmt::format("{}{}", converter_end, config_class);
    if (!call.ends_with(end) || !chooses) return "";
    const std::string kind = call.substr(0, call.size() - end.size());
    return fmt::format("converter.{}.{}", kind.substr(kind.rfind('.') + 1), argument);
  }

  void model(const std::string& name, const std::string& flavor, const Mark& mark) {
    if (!name.empty()) fields_.push_back({"model.name", {name}, mark, ""});
    fields_.push_back({"model.flavor", {flavor}, mark, ""});
  }

  // A keyword argument within a call, else a field of an object.
  void assignment(const Token& name) {
    at_ += 2;
    std::string field;
    const bool argument = !open_.empty() && !open_.back().call.empty();
    if (argument) {
      const std::string_view section = section_of_class(open_.back().call);
      field = section.empty() ? model_field(name.text) : fmt::format("{}.{}", section, name.text);
      if (name.text == "activation_checkpoint" || name.text == "compile") field = name.text;
    } else {
      field = field_of(name.text);
    }
    // All of a section has its settings as arguments: "config.training = TrainingConfig(".
    const bool section =
        now().kind == Token::Kind::name && is(next(), "(") && section_of_class(now().text) == field;
    const bool policies = field == "activation_checkpoint" || field == "compile";
    if (field.empty() || (section && !policies)) return;
    SetField set{field, {}, name.mark, "", field};
    if (policies) {
      policy(set);
    } else {
      value(set);
    }
    fields_.push_back(std::move(set));
  }

  // The name of a class, whose arguments are read as those of a call; or None.
  void policy(SetField& set) {
    const Token token = now();
    if (token.kind != Token::Kind::name) {
      set.unknown = token.text;
      return;
    }
    set.values = {token.text == "None" ? "null" : token.text};
    if (token.text == "None") ++at_;
  }

  void value(SetField& set) {
    const std::size_t start = at_;
    if (is(now(), "[")) {
      ++at_;
      if (list(set.values, 1) && ends()) return;
    } else if (const auto one = literal(); one && ends()) {
      set.values = {*one};
      return;
    }
    at_ = start;
    set.values.clear();
    set.unknown = now().text;
  }

  // Whether nothing more of the value follows.
  bool ends() const {
    const Token& token = now();
    return token.kind == Token::Kind::line || token.kind == Token::Kind::end || is(token, ",") ||
           is(token, ")") || is(token, "]");
  }

  void skip_lines() {
    while (now().kind == Token::Kind::line) ++at_;
  }

  bool list(std::vector<std::string>& items, int depth) {
    for (skip_lines(); !is(now(), "]"); skip_lines()) {
      if (is(now(), "[") && depth == 1) {
        ++at_;
        std::vector<std::string> inner;
        if (!list(inner, 2)) return false;
        std::string joined;
        for (const auto& one : inner) joined += (joined.empty() ? "" : " ") + one;
        items.push_back(joined);
      } else {
        const auto one = literal();
        if (!one) return false;
        items.push_back(*one);
      }
      skip_lines();
      if (is(now(), ",")) {
        ++at_;
      } else if (!is(now(), "]")) {
        return false;
      }
    }
    ++at_;
    return true;
  }

  std::optional<std::string> literal() {
    const Token token = now();
    if (token.kind == Token::Kind::string) {
      ++at_;
      return token.text;
    }
    if (token.kind == Token::Kind::name) {
      static constexpr std::array<std::pair<std::string_view, std::string_view>, 3> words{
          {{"True", "true"}, {"False", "false"}, {"None", "null"}}};
      for (const auto& [python, ours] : words) {
        if (token.text != python) continue;
        ++at_;
        return std::string(ours);
      }
      return {};
    }
    return product();
  }

  // -1, 8192, 8_192, 1.5, 8 * 8192.
  std::optional<std::string> product() {
    const bool negative = is(now(), "-");
    if (negative) ++at_;
    if (now().kind != Token::Kind::number) return {};
    const std::string first = digits(now().text);
    std::optional<std::int64_t> product = whole(first);
    ++at_;
    if (!product || !is(now(), "*")) return (negative ? "-" : "") + first;
    while (is(now(), "*") && next().kind == Token::Kind::number) {
      const auto factor = whole(digits(next().text));
      std::int64_t result = 0;
      if (!factor || __builtin_mul_overflow(*product, *factor, &result)) return {};
      product = result;
      at_ += 2;
    }
    return fmt::format("{}{}", negative ? "-" : "", *product);
  }

  static std::string digits(std::string text) {
    std::erase(text, '_');
    return text;
  }
  static std::optional<std::int64_t> whole(const std::string& text) {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) return {};
    return value;
  }

  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  std::vector<Bracket> open_;
  std::string name_;  // of the model's package
  std::vector<SetField> fields_;
};

}  // namespace

std::vector<SetField> read_python_settings(const std::string& text, const std::string& file) {
  // torchtitan's own lie in the model's folder: models/deepseek_v3/config_registry.py.
  const bool own = file_name_of(file) == "config_registry.py";
  return Reader(Lexer(text, file).tokens(), own ? file_name_of(folder_of(file)) : "").read();
}

}  // namespace planner
