#include "planner/page/json_shown.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "costmodel/base/error.hpp"

namespace planner {

using Json = nlohmann::ordered_json;

namespace {

struct Leaf {
  std::string pointer;
  bool shown = false;
};
// Of the report whose page is made; a copy of a value is none of them.
thread_local std::unordered_map<const Json*, Leaf> leaves;

void add(const Json& value, const Json::json_pointer& place) {
  if (value.is_object()) {
    for (const auto& [key, item] : value.items()) add(item, place / key);
  } else if (value.is_array()) {
    for (std::size_t i = 0; i < value.size(); ++i) add(value[i], place / i);
  } else {
    leaves.emplace(&value, Leaf{.pointer = place.to_string()});
  }
}

}  // namespace

ShownValues::ShownValues(const Json& report) {
  SHARDPLAN_CHECK(leaves.empty());  // one page at a time
  add(report, Json::json_pointer());
}

ShownValues::~ShownValues() { leaves.clear(); }

void note_shown(const Json& value) {
  if (value.is_structured()) {
    for (const Json& item : value) note_shown(item);
  } else if (const auto leaf = leaves.find(&value); leaf != leaves.end()) {
    leaf->second.shown = true;
  }
}

bool is_shown(const Json& value) {
  if (value.is_structured()) return std::ranges::all_of(value, &is_shown);
  const auto leaf = leaves.find(&value);
  return value.is_null() || value == Json("") || (leaf != leaves.end() && leaf->second.shown);
}

std::string pointer_of(const Json& value) {
  const auto leaf = leaves.find(&value);
  return leaf == leaves.end() ? "" : leaf->second.pointer;
}

}  // namespace planner
