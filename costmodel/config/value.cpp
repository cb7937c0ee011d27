#include "costmodel/config/value.hpp"

#include <map>
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

void Value::set(const std::string& key, Value value) {
  if (kind == Kind::null) kind = Kind::map;
  if (Value* present = find(key)) {
    *present = std::move(value);
  } else {
    Mark where = value.mark;
    entries.push_back({key, std::move(where), std::move(value)});
  }
}

Value scalar_value(std::string text, Mark mark) {
  Value value;
  value.kind = Value::Kind::scalar;
  value.text = std::move(text);
  value.mark = std::move(mark);
  return value;
}

Value merged(const Value& base, const Value& over) {
  if (over.kind == Value::Kind::null) return base;
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
      present = merged(present, entry.value);
    }
  }
  return result;
}

}  // namespace costmodel
