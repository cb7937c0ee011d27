// A configuration file as a tree of values, each with the place where it was written. Only yaml.cpp
// uses the YAML library; all other code reads this tree.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "costmodel/base/error.hpp"

namespace costmodel {

struct Value {
  enum class Kind { null, scalar, sequence, map };
  struct Entry;

  Kind kind = Kind::null;
  Mark mark;
  std::string text;            // of a scalar
  bool quoted = false;         // a quoted scalar is text, never a number or a Boolean
  std::vector<Value> items;    // of a sequence
  std::vector<Entry> entries;  // of a map, in the order written

  const Value* find(std::string_view key) const;
  Value* find(std::string_view key);
  // The item of a sequence whose place `key` is, from 0; null where there is none.
  Value* item(std::string_view key);
  // Sets or replaces a key of a map. A null value becomes a map first.
  void set(const std::string& key, Value value);
  // Removes a key of a map, if it is there.
  void erase(std::string_view key);
  bool is_map() const { return kind == Kind::map; }
  bool is_scalar() const { return kind == Kind::scalar; }
};

struct Value::Entry {
  std::string key;
  Mark key_mark;
  Value value;
};

Value scalar_value(std::string text, Mark mark = {});

// Whether `map` is some keys of the device or the stack that stands below it by name, not another
// one: it has neither a base nor a title.
bool changes_named(std::string_view key, const Value& map);

// `map` with `base: name`.
Value on_top_of(Value name, Value map);

// Merges `over` into `base`: maps merge key by key, a map whose keys are places in a list merges
// into its items, a map that changes_named() is put on_top_of() a name, any other value replaces.
// Throws ConfigError for a place that the list lacks.
Value merged(const Value& base, const Value& over);

}  // namespace costmodel
