#include "planner/frameworks/toml_settings.hpp"

#include <algorithm>
#include <tuple>

#include "costmodel/config/toml.hpp"

namespace planner {

using namespace costmodel;

namespace {

std::string text_of(const Value& value) { return value.is_scalar() ? value.text : "?"; }

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
    } else {
      fields.push_back({prefix + key, {text_of(value)}, mark, ""});
    }
  }
}

}  // namespace

std::vector<SetField> read_toml(const std::string& text, const std::string& file) {
  std::vector<SetField> fields;
  flatten(parse_toml(text, file), "", fields);
  std::ranges::stable_sort(fields, [](const SetField& a, const SetField& b) {
    return std::tie(a.mark.line, a.mark.column) < std::tie(b.mark.line, b.mark.column);
  });
  return fields;
}

}  // namespace planner
