// Reads one map of a configuration: each key once, with its type and range. A key that is never
// read is an error. Every error is a ConfigError with the place, the nearest known name and the
// allowed values.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "costmodel/base/unit_text.hpp"
#include "costmodel/config/value.hpp"

namespace costmodel {

struct IntegerRange {
  std::int64_t least;
  std::int64_t most;
};

// Range of a count of ranks, stages or micro-batches.
inline constexpr IntegerRange any_size{1, 1'000'000};

class MapReader {
 public:
  // `what` names the map in messages: "plan", "model 'gpt3-175b'". `map` must outlive the reader. A
  // null value reads as an empty map. `keys`: all that the map may have, if that is known: the
  // error for what is no map names them, with an `example`, and a required one that is absent is
  // reported after those that are unknown.
  MapReader(const Value& map, std::string what, std::vector<std::string_view> keys = {},
            const std::string& example = "");

  const Value* optional(std::string_view key);  // nullptr when absent or null
  // Throws when the key is absent, at the place of a key that may be meant if there is one.
  const Value& required(std::string_view key);
  bool is_auto(std::string_view key);  // the value is the word `auto`
  std::optional<std::int64_t> integer(std::string_view key, IntegerRange range);
  std::optional<std::int64_t> tokens(std::string_view key, IntegerRange range);  // also "128k"
  std::optional<double> number(std::string_view key, Dimension dimension, double least,
                               double most);
  double required_number(std::string_view key, Dimension dimension, double least, double most);
  std::optional<bool> boolean(std::string_view key);
  std::optional<std::string> text(std::string_view key);
  // The index of the value in `names`. Throws for an unknown name and suggests the nearest one.
  std::optional<std::size_t> one_of(std::string_view key, std::span<const std::string_view> names);
  // The place of the value; the map's place when the key is absent.
  Mark mark_of(std::string_view key) const;
  // Of values that do not go together, the place of one that stands above the map's base: in an
  // argument, or in the map's own file. The first key's where none does.
  Mark mark_of_any(std::initializer_list<std::string_view> keys) const;
  const Mark& mark() const { return map_.mark; }

  // The keys of the map that were never read and have a value, in its order.
  std::vector<std::string_view> unread() const;
  // Throws for the first key that was never read.
  void finish() const;

 private:
  bool was_asked_for(std::string_view key) const;
  [[noreturn]] void unknown(const Value::Entry& entry, const std::vector<std::string>& keys) const;

  const Value& map_;
  std::string what_;
  std::vector<std::string> known_;
  std::vector<std::string_view> expected_;  // empty: not said
};

// The same value with lengths in tokens as plain numbers: "128k" is 131,072 and "1M" 1,048,576, as
// the field means them of sequences. A map's values too.
Value with_plain_lengths(Value value);

// The same for a value that is not a map entry. Each throws ConfigError with `what` and the value's
// place.
std::int64_t read_integer(const Value& value, const std::string& what, IntegerRange range);
double read_number(const Value& value, const std::string& what, Dimension dimension, double least,
                   double most);
bool read_boolean(const Value& value, const std::string& what);
std::string read_text(const Value& value, const std::string& what);

}  // namespace costmodel
