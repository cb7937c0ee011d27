#include "costmodel/config/toml.hpp"

#include <fmt/format.h>

#include <string_view>

#include "costmodel/base/escape.hpp"

#ifdef SHARDPLAN_WITH_TOML
#define TOML_HEADER_ONLY 1
#include <toml++/toml.h>
#endif

namespace costmodel {

#ifdef SHARDPLAN_WITH_TOML

namespace {

constexpr int deepest_table = 32;  // tables in tables, or lists in lists; torchtitan has three

[[noreturn]] void refuse_depth(const Mark& mark) {
  throw ConfigError(mark, "is nested too deeply",
                    fmt::format("allowed: up to {} levels", deepest_table));
}

// Dotted keys make tables in tables, which toml++ frees by a call each: too many end the program.
void refuse_deep_keys(const std::string& text, const std::string& file) {
  constexpr std::string_view ends = ",[]{}=#\n";
  int dots = 0;
  Mark mark{file, 1, 1};
  for (const char c : text) {
    if (ends.find(c) != std::string_view::npos) dots = 0;
    if (c == '.' && ++dots > deepest_table) refuse_depth(mark);
    mark.column = c == '\n' ? 1 : mark.column + 1;
    if (c == '\n') ++mark.line;
  }
}

class TomlTree {
 public:
  explicit TomlTree(const std::string& file) : file_(file) {}

  Mark mark_of(const toml::source_position& place) const {
    return {file_, static_cast<int>(place.line), static_cast<int>(place.column)};
  }

  Value map_of(const toml::table& table, int depth) const {
    Value map;
    map.kind = Value::Kind::map;
    map.mark = mark_of(table.source().begin);
    for (const auto& [key, node] : table) {
      const Mark mark = mark_of(key.source().begin);
      if (depth == deepest_table && (node.is_table() || node.is_array())) refuse_depth(mark);
      map.entries.push_back({std::string(key.str()), mark, value_of(node, depth + 1)});
    }
    return map;
  }

 private:
  Value value_of(const toml::node& node, int depth) const {
    if (const auto* table = node.as_table()) return map_of(*table, depth);
    const Mark mark = mark_of(node.source().begin);
    const auto* list = node.as_array();
    if (list == nullptr) return scalar_value(text_of(node), mark);
    if (depth > deepest_table) refuse_depth(mark);
    Value items;
    items.kind = Value::Kind::sequence;
    items.mark = mark;
    for (const auto& item : *list) items.items.push_back(value_of(item, depth + 1));
    return items;
  }

  static std::string text_of(const toml::node& node) {
    if (const auto* text = node.as_string()) return text->get();
    if (const auto* number = node.as_integer()) return fmt::format("{}", number->get());
    if (const auto* number = node.as_floating_point()) return fmt::format("{}", number->get());
    if (const auto* flag = node.as_boolean()) return flag->get() ? "true" : "false";
    return "?";
  }

  const std::string& file_;
};

}  // namespace

bool reads_toml() { return true; }

Value parse_toml(const std::string& text, const std::string& file) {
  refuse_deep_keys(text, file);
  const TomlTree tree(file);
  try {
    return tree.map_of(toml::parse(text, file), 1);
  } catch (const toml::parse_error& error) {
    throw ConfigError(tree.mark_of(error.source().begin),
                      fmt::format("is no TOML: {}", printable(error.description())),
                      "write it as toml.io/en/v1.0.0 says");
  }
}

#else

bool reads_toml() { return false; }

Value parse_toml(const std::string& /*text*/, const std::string& file) {
  throw ConfigError({file, 0, 0}, "is TOML, which this build does not read",
                    "install libtomlplusplus-dev and build again");
}

#endif

}  // namespace costmodel
