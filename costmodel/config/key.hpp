// A key of a configuration map as one record: its name, what it may be, what it means and which
// field of a `Spec` it sets. Reading, checking and description come from the same row. A key that
// is absent leaves its field as it is.
//
// `field` is a pointer to a member, or a function from the Spec to a reference, for what lies
// deeper; the member may be a std::optional.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "costmodel/base/units.hpp"
#include "costmodel/config/map_reader.hpp"

namespace costmodel {

// A key for people.
struct KeyText {
  std::string name;     // "memory.context_bytes"
  std::string allowed;  // "0 to 1e+12 B"
  std::string help;     // a sentence without its full stop
};

std::string whole_text(IntegerRange range);
std::string number_text(Dimension dimension, double least, double most);
std::string words_text(std::span<const std::string_view> words);

template <class Spec>
struct Key {
  std::string_view name;
  std::string allowed;
  std::string_view help;
  std::function<void(MapReader&, Spec&)> read;
  std::vector<KeyText> parts = {};  // of a map
};

template <class Spec>
using Keys = std::vector<Key<Spec>>;

namespace key {

template <class T>
void put(T& field, auto value) {
  field = static_cast<T>(value);
}
template <class T>
void put(std::optional<T>& field, auto value) {
  field = static_cast<T>(value);
}

template <class Spec, class Field>
using TypeOf = std::remove_cvref_t<std::invoke_result_t<Field, Spec&>>;

template <class T>
constexpr Dimension dimension_of() {
  if constexpr (std::is_same_v<T, Seconds>) return Dimension::time;
  if constexpr (std::is_same_v<T, Bytes>) return Dimension::size;
  return Dimension::count;
}

template <class Spec, class Field>
Key<Spec> flag(std::string_view name, Field field, std::string_view help) {
  return {name, "true, false", help, [=](MapReader& reader, Spec& spec) {
            if (const auto on = reader.boolean(name)) put(std::invoke(field, spec), *on);
          }};
}

template <class Spec, class Field>
Key<Spec> text(std::string_view name, Field field, std::string_view help) {
  return {name, "text", help, [=](MapReader& reader, Spec& spec) {
            if (auto words = reader.text(name)) std::invoke(field, spec) = *std::move(words);
          }};
}

template <class Spec, class Field>
Key<Spec> whole(std::string_view name, Field field, IntegerRange range, std::string_view help) {
  return {name, whole_text(range), help, [=](MapReader& reader, Spec& spec) {
            if (const auto n = reader.integer(name, range)) put(std::invoke(field, spec), *n);
          }};
}

// In the unit of the field: seconds, bytes, or none.
template <class Spec, class Field>
Key<Spec> number(std::string_view name, Field field, double least, double most,
                 std::string_view help) {
  constexpr Dimension dimension = dimension_of<TypeOf<Spec, Field>>();
  return {name, number_text(dimension, least, most), help, [=](MapReader& reader, Spec& spec) {
            if (const auto x = reader.number(name, dimension, least, most))
              put(std::invoke(field, spec), *x);
          }};
}

// One of `words`, which must outlive the row; an enumeration in their order.
template <class Spec, class Field>
Key<Spec> word(std::string_view name, Field field, std::span<const std::string_view> words,
               std::string_view help) {
  return {name, words_text(words), help, [=](MapReader& reader, Spec& spec) {
            if (const auto at = reader.one_of(name, words)) put(std::invoke(field, spec), *at);
          }};
}

// Where the other keys of the map come from: for people, not read further.
template <class Spec>
Key<Spec> source(std::string_view name = "source", bool required = false) {
  return {name, "text or a map",
          required ? "where these are published or measured; required"
                   : "where these are published or measured",
          [=](MapReader& reader, Spec&) {
            required ? static_cast<void>(reader.required(name))
                     : static_cast<void>(reader.optional(name));
          }};
}

// The row of a key that must be there.
template <class Spec>
Key<Spec> required(Key<Spec> row) {
  row.allowed += "; required";
  row.read = [name = row.name, read = row.read](MapReader& reader, Spec& spec) {
    reader.required(name);
    read(reader, spec);
  };
  return row;
}

// What no other kind can say.
template <class Spec, class Read>
Key<Spec> special(std::string_view name, std::string allowed, std::string_view help, Read read) {
  return {name, std::move(allowed), help, read};
}

}  // namespace key

template <class Spec>
void read_keys(MapReader& reader, const Keys<Spec>& keys, Spec& spec) {
  for (const auto& key : keys) key.read(reader, spec);
}

// The rows as texts, those of maps with their parts; names begin with `prefix`.
template <class Spec>
std::vector<KeyText> described(const Keys<Spec>& keys, const std::string& prefix) {
  std::vector<KeyText> all;
  for (const auto& key : keys) {
    const std::string name = prefix + std::string(key.name);
    if (key.parts.empty()) all.push_back({name, key.allowed, std::string(key.help)});
    for (const KeyText& part : key.parts)
      all.push_back({name + "." + part.name, part.allowed, part.help});
  }
  return all;
}

namespace key {

// A map of its own, whose keys set parts of what `field` gives. `keys` must outlive the row.
template <class Spec, class Field, class Part>
Key<Spec> map(std::string_view name, Field field, const Keys<Part>& keys) {
  return {name, "a map", "",
          [name, field, &keys](MapReader& reader, Spec& spec) {
            const Value* value = reader.optional(name);
            if (value == nullptr) return;
            MapReader own(*value, std::string(name));
            read_keys(own, keys, std::invoke(field, spec));
            own.finish();
          },
          described(keys, "")};
}

}  // namespace key

}  // namespace costmodel
