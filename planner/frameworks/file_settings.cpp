#include "planner/frameworks/file_settings.hpp"

#include <algorithm>
#include <tuple>

#include "costmodel/base/input_file.hpp"
#include "costmodel/base/path.hpp"
#include "costmodel/config/search_path.hpp"
#include "costmodel/config/toml.hpp"
#include "costmodel/config/yaml.hpp"

namespace planner {

using namespace costmodel;

namespace {

// "500_000" is a number of YAML 1.1.
std::string text_of(const Value& value) {
  if (!value.is_scalar()) return "?";
  std::string text = value.text;
  const bool number = !value.quoted && text.find_first_not_of("0123456789_") == std::string::npos;
  if (number) std::erase(text, '_');
  return text;
}

std::vector<std::string> items_of(const Value& list) {
  std::vector<std::string> items;
  for (const Value& value : list.items) {
    std::string item = value.kind == Value::Kind::sequence ? "" : text_of(value);
    for (const Value& one : value.items) item += (item.empty() ? "" : " ") + text_of(one);
    items.push_back(std::move(item));
  }
  return items;
}

void flatten(const Value& map, const std::string& prefix, std::vector<SetField>& fields) {
  for (const auto& [key, mark, value] : map.entries) {
    if (value.is_map()) {
      flatten(value, prefix + key + ".", fields);
    } else if (value.kind == Value::Kind::sequence) {
      fields.push_back({prefix + key, items_of(value), mark, ""});
    } else if (value.is_scalar()) {
      fields.push_back({prefix + key, {text_of(value)}, mark, ""});
    }
  }
}

std::vector<SetField> flattened(const Value& map) {
  if (!map.is_map() && map.kind != Value::Kind::null)
    throw ConfigError(map.mark, "is no map of settings", "write KEY: VALUE lines");
  std::vector<SetField> fields;
  flatten(map, "", fields);
  std::ranges::stable_sort(fields, [](const SetField& a, const SetField& b) {
    return std::tie(a.mark.line, a.mark.column) < std::tie(b.mark.line, b.mark.column);
  });
  return fields;
}

}  // namespace

std::vector<SetField> read_toml(const std::string& text, const std::string& file) {
  return flattened(parse_toml(text, file));
}

std::vector<SetField> read_yaml(const std::string& text, const std::string& file) {
  return flattened(parse_yaml(text, file));
}

std::optional<std::vector<SetField>> read_named(const std::string& name, const std::string& file) {
  const std::string folder = folder_of(file), named = joined_path(folder, name);
  if (!is_regular_file(named) || !lies_in(named, folder.empty() ? "." : folder))
    return std::nullopt;
  const std::string text = read_file(named, config_limits);
  return named.ends_with(".toml") ? read_toml(text, named) : read_yaml(text, named);
}

}  // namespace planner
