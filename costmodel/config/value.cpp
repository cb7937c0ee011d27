#include "costmodel/config/value.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <utility>

namespace costmodel {

const Value* Value::find(std::string_view key) const {
  for (const auto& entry : entries) {
    if (entry.key == key) return &entry.value;
  }
  return nullptr;
}

Value* Value::find(std::string_view key) {
  return const_cast<Value*>(std::as_const(*this).find(key));
}

namespace {

// A place in a list, if `key` says one.
std::optional<std::size_t> place_of(std::string_view key) {
  std::size_t place = 0;
  const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), place);
  const bool whole = error == std::errc() && end == key.data() + key.size();
  return whole ? std::optional(place) : std::nullopt;
}

}  // namespace

Value* Value::item(std::string_view key) {
  const auto place = place_of(key);
  return kind == Kind::sequence && place && *place < items.size() ? &items[*place] : nullptr;
}

void Value::set(const std::string& key, Value value) {
  if (kind == Kind::null) kind = Kind::map;
  if (Value* present = find(key)) {
    *present = std::move(value);
  } else {
    Mark where = value.mark;
    entries.push_back({key, std::move(where), std::move(value)});
  }
}

void Value::erase(std::string_view key) {
  std::erase_if(entries, [key](const Entry& entry) { return entry.key == key; });
}

Value scalar_value(std::string text, Mark mark) {
  Value value;
  value.kind = Value::Kind::scalar;
  value.text = std::move(text);
  value.mark = std::move(mark);
  return value;
}

namespace {

bool names_places(const Value& map) {
  return map.is_map() && !map.entries.empty() &&
         std::ranges::all_of(map.entries, [](const Value::Entry& entry) {
           return place_of(entry.key).has_value();
         });
}

Value merged_items(Value list, const Value& over) {
  for (const auto& entry : over.entries) {
    Value* const item = list.item(entry.key);
    if (item == nullptr) {
      throw ConfigError(entry.key_mark,
                        fmt::format("{} is no place in a list of {}", entry.key, list.items.size()),
                        "places count from 0");
    }
    *item = merged(*item, entry.value);
  }
  return list;
}

}  // namespace

bool changes_named(std::string_view key, const Value& map) {
  return (key == "device" || key == "stack") && map.is_map() && map.find("base") == nullptr &&
         map.find("title") == nullptr;
}

Value on_top_of(Value name, Value map) {
  map.entries.insert(map.entries.begin(), {"base", name.mark, std::move(name)});
  return map;
}

Value merged(const Value& base, const Value& over) {
  if (over.kind == Value::Kind::null) return base;
  if (base.kind == Value::Kind::sequence && names_places(over)) return merged_items(base, over);
  if (!base.is_map() || !over.is_map()) return over;
  Value result = base;
  result.mark = over.mark;
  std::map<std::string_view, std::size_t> places;
  for (std::size_t i = 0; i < base.entries.size(); ++i) places.emplace(base.entries[i].key, i);
  for (const auto& entry : over.entries) {
    const auto place = places.find(entry.key);
    if (place == places.end()) {
      result.entries.push_back(entry);
    } else {
      Value& present = result.entries[place->second].value;
      present = present.is_scalar() && changes_named(entry.key, entry.value)
                    ? on_top_of(std::move(present), entry.value)
                    : merged(present, entry.value);
    }
  }
  return result;
}

}  // namespace costmodel
