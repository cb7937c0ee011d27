#include "planner/frameworks/toml_settings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <tuple>

#include "costmodel/base/escape.hpp"

#ifdef SHARDPLAN_WITH_TOML
#define TOML_HEADER_ONLY 1
#include <toml++/toml.h>
#endif

namespace planner {

using namespace costmodel;

#ifdef SHARDPLAN_WITH_TOML

namespace {

constexpr int deepest_table = 32;  // tables in tables; torchtitan has three

std::string text_of(const toml::node& node) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* number = node.as_integer()) return fmt::format("{}", number->get());
  if (const auto* number = node.as_floating_point()) return fmt::format("{}", number->get());
  if (const auto* flag = node.as_boolean()) return flag->get() ? "true" : "false";
  return "?";
}

std::vector<std::string> items_of(const toml::array& list) {
  std::vector<std::string> items;
  for (const auto& node : list) {
    std::string item;
    if (const auto* inner = node.as_array()) {
      for (const auto& one : *inner) item += (item.empty() ? "" : " ") + text_of(one);
    } else {
      item = text_of(node);
    }
    items.push_back(std::move(item));
  }
  return items;
}

// Dotted keys make tables in tables, which toml++ frees by a call each: too many end the program.
void refuse_deep_keys(const std::string& text, const std::string& file) {
  constexpr std::string_view ends = ",[]{}=#\n";
  int dots = 0;
  Mark mark{file, 1, 1};
  for (const char c : text) {
    if (ends.find(c) != std::string_view::npos) dots = 0;
    if (c == '.' && ++dots > deepest_table)
      throw ConfigError(mark, "is nested too deeply", "torchtitan's sections have three levels");
    mark.column = c == '\n' ? 1 : mark.column + 1;
    if (c == '\n') ++mark.line;
  }
}

class Flattening {
 public:
  explicit Flattening(const std::string& file) : file_(file) {}

  void add(const toml::table& table, const std::string& prefix, int depth) {
    for (const auto& [key, node] : table) {
      const Mark mark = mark_of(key.source().begin);
      const std::string name = prefix + std::string(key.str());
      const auto* inner = node.as_table();
      if (inner != nullptr && depth == deepest_table)
        throw ConfigError(mark, "is nested too deeply", "torchtitan's sections have three levels");
      if (inner != nullptr) {
        add(*inner, name + ".", depth + 1);
      } else if (const auto* list = node.as_array()) {
        fields.push_back({name, items_of(*list), mark, ""});
      } else {
        fields.push_back({name, {text_of(node)}, mark, ""});
      }
    }
  }

  Mark mark_of(const toml::source_position& place) const {
    return {file_, static_cast<int>(place.line), static_cast<int>(place.column)};
  }

  std::vector<SetField> fields;

 private:
  const std::string& file_;
};

}  // namespace

bool reads_toml() { return true; }

std::vector<SetField> read_toml(const std::string& text, const std::string& file) {
  refuse_deep_keys(text, file);
  Flattening flat(file);
  try {
    flat.add(toml::parse(text, file), "", 1);
  } catch (const toml::parse_error& error) {
    throw ConfigError(flat.mark_of(error.source().begin),
                      fmt::format("is no TOML: {}", printable(error.description())),
                      "write it as toml.io/en/v1.0.0 says");
  }
  std::ranges::stable_sort(flat.fields, [](const SetField& a, const SetField& b) {
    return std::tie(a.mark.line, a.mark.column) < std::tie(b.mark.line, b.mark.column);
  });
  return std::move(flat.fields);
}

#else

bool reads_toml() { return false; }

std::vector<SetField> read_toml(const std::string& /*text*/, const std::string& file) {
  throw ConfigError({file, 0, 0}, "is TOML, which this build does not read",
                    "install libtomlplusplus-dev and build again");
}

#endif

}  // namespace planner
