// A key of a configuration map as one record: its name, what it may be, what it means and which
// field of a `Spec` it sets. Reading, checking and description come from the same row. A key that
// is absent leaves its field as it is.
//
// `field` is a pointer to a member, or a function from the Spec to a reference, for what lies
// deeper; the member may be a std::optional. What a key may be is put into words only when asked.
#pragma once

#include <algorithm>
#include <functional>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "costmodel/base/units.hpp"
#include "costmodel/config/key_text.hpp"
#include "costmodel/config/map_reader.hpp"

namespace costmodel {

template <class Spec>
struct Key {
  std::string_view name;
  std::string_view help;  // empty: a map, told by its parts alone
  std::function<std::string()> allowed;
  std::function<void(MapReader&, Spec&)> read;
  std::function<std::vector<KeyText>()> parts = {};  // of a map (".x") or of a list ("[].x")
  bool required = false;
};

template <class Spec>
using Keys = std::vector<Key<Spec>>;

template <class Spec>
void read_keys(MapReader& reader, const Keys<Spec>& keys, Spec& spec) {
  for (const auto& key : keys) {
    if (key.required) reader.required(key.name);
    key.read(reader, spec);
  }
}

template <class Spec>
std::vector<std::string_view> names_of(const Keys<Spec>& keys) {
  std::vector<std::string_view> names;
  for (const auto& key : keys) names.push_back(key.name);
  return names;
}

// A map of these keys as it is written, by those that must be there, or else the first one:
// "value: true, source: ...".
template <class Spec>
std::string example_of(const Keys<Spec>& keys) {
  std::string example;
  for (const auto& key : keys) {
    if (key.required) example += example_entry(key.name, key.allowed(), example.empty());
  }
  if (example.empty() && !keys.empty())
    example = example_entry(keys.front().name, keys.front().allowed(), true) + ", ...";
  return example;
}

// Reads a map that has these keys and no other; `what` names it in messages.
template <class Spec>
void read_map(const Value& map, std::string what, const Keys<Spec>& keys, Spec& spec) {
  const bool is_map = map.kind == Value::Kind::map;
  MapReader reader(map, std::move(what), names_of(keys), is_map ? "" : example_of(keys));
  read_keys(reader, keys, spec);
  reader.finish();
}

// The rows as texts, those of maps and lists with their parts; names begin with `prefix`.
template <class Spec>
std::vector<KeyText> described(const Keys<Spec>& keys, const std::string& prefix) {
  std::vector<KeyText> all;
  for (const auto& key : keys) {
    const std::string name = prefix + std::string(key.name);
    if (!key.help.empty()) {
      const char* required = key.required ? "; required" : "";
      all.push_back({name, key.allowed() + required, std::string(key.help)});
    }
    if (!key.parts) continue;
    for (const KeyText& part : key.parts())
      all.push_back({name + part.name, part.allowed, part.help});
  }
  return all;
}

// Tables one after the other.
template <class Spec, class... Tables>
Keys<Spec> joined(Tables... tables) {
  Keys<Spec> all;
  all.reserve((tables.size() + ...));
  (std::move(tables.begin(), tables.end(), std::back_inserter(all)), ...);
  return all;
}

namespace key {

// A table of these rows.
template <class Spec, class... Rows>
Keys<Spec> rows(Rows... all) {
  Keys<Spec> keys;
  keys.reserve(sizeof...(all));
  (keys.push_back(std::move(all)), ...);
  return keys;
}

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
  if constexpr (std::is_same_v<T, BytesPerSecond>) return Dimension::bandwidth;
  if constexpr (std::is_same_v<T, FlopsPerSecond>) return Dimension::rate;
  return Dimension::count;
}

// The words themselves.
inline std::function<std::string()> fixed_text(const char* words) {
  return [words] { return std::string(words); };
}

template <class Spec, class Field>
Key<Spec> flag(std::string_view name, Field field, std::string_view help) {
  return {name, help, fixed_text("true, false"), [=](MapReader& reader, Spec& spec) {
            if (const auto on = reader.boolean(name)) put(std::invoke(field, spec), *on);
          }};
}

template <class Spec, class Field>
Key<Spec> text(std::string_view name, Field field, std::string_view help) {
  return {name, help, fixed_text("text"), [=](MapReader& reader, Spec& spec) {
            if (auto words = reader.text(name)) std::invoke(field, spec) = *std::move(words);
          }};
}

template <class Spec, class Field>
Key<Spec> whole(std::string_view name, Field field, IntegerRange range, std::string_view help) {
  return {name, help, [range] { return whole_text(range); },
          [=](MapReader& reader, Spec& spec) {
            if (const auto n = reader.integer(name, range)) put(std::invoke(field, spec), *n);
          }};
}

// A length in tokens: a whole number, also as 128k.
template <class Spec, class Field>
Key<Spec> tokens(std::string_view name, Field field, IntegerRange range, std::string_view help) {
  return {name, help, [range] { return whole_text(range) + ", also as 128k (131,072)"; },
          [=](MapReader& reader, Spec& spec) {
            if (const auto n = reader.tokens(name, range)) put(std::invoke(field, spec), *n);
          }};
}

// In the unit of the field: seconds, bytes, a rate, or none.
template <class Spec, class Field>
Key<Spec> number(std::string_view name, Field field, double least, double most,
                 std::string_view help) {
  constexpr Dimension dimension = dimension_of<TypeOf<Spec, Field>>();
  return {name, help, [=] { return number_text(dimension, least, most); },
          [=](MapReader& reader, Spec& spec) {
            if (const auto x = reader.number(name, dimension, least, most))
              put(std::invoke(field, spec), *x);
          }};
}

// The same of a range of its own: anything with `least` and `most`.
template <class Spec, class Field, class Range>
Key<Spec> number(std::string_view name, Field field, Range range, std::string_view help) {
  return number<Spec>(name, field, range.least, range.most, help);
}

// One of `words`, which must outlive the row; an enumeration in their order.
template <class Spec, class Field>
Key<Spec> word(std::string_view name, Field field, std::span<const std::string_view> words,
               std::string_view help) {
  return {name, help, [words] { return words_text(words); },
          [=](MapReader& reader, Spec& spec) {
            if (const auto at = reader.one_of(name, words)) put(std::invoke(field, spec), *at);
          }};
}

// What no other kind can say: `allowed` says in words what it may be.
template <class Spec, class Read>
Key<Spec> special(std::string_view name, std::function<std::string()> allowed,
                  std::string_view help, Read read) {
  return {name, help, std::move(allowed), read};
}

// For people, and kept nowhere: a text, or anything.
template <class Spec>
Key<Spec> remark(std::string_view name, std::string_view help) {
  return {name, help, fixed_text("text"), [=](MapReader& reader, Spec&) { reader.text(name); }};
}
template <class Spec>
Key<Spec> note(std::string_view name, std::string_view help) {
  return {name, help, fixed_text("anything"),
          [=](MapReader& reader, Spec&) { reader.optional(name); }};
}

// Where the other keys of the map come from: for people, not read further.
template <class Spec>
Key<Spec> source(std::string_view name = "source") {
  return {name, "where these are published or measured", fixed_text("text or a map"),
          [=](MapReader& reader, Spec&) { reader.optional(name); }};
}
// The row of a key that must be there.
template <class Spec>
Key<Spec> required(Key<Spec> row) {
  row.required = true;
  return row;
}

template <class Spec>
Key<Spec> required_source() {
  return required(source<Spec>());
}

// The row of a key that may also be `word`: where `takes` finds that word, it does what it means
// and says true, and the key is not read.
template <class Spec, class Takes>
Key<Spec> or_word(Key<Spec> row, const char* word, Takes takes) {
  row.allowed = [allowed = row.allowed, word] { return allowed() + ", " + word; };
  row.read = [name = row.name, read = row.read, takes](MapReader& reader, Spec& spec) {
    if (!takes(reader, name, spec)) read(reader, spec);
  };
  return row;
}

// A map of its own, whose keys set parts of what `field` gives. `keys` must outlive the row.
template <class Spec, class Field, class Part>
Key<Spec> map(std::string_view name, Field field, const Keys<Part>& keys) {
  return {name, "", fixed_text("a map"),
          [name, field, &keys](MapReader& reader, Spec& spec) {
            if (const Value* value = reader.optional(name))
              read_map(*value, std::string(name), keys, std::invoke(field, spec));
          },
          [&keys] { return described(keys, "."); }};
}

// A list of maps of `keys`, which must outlive the row: `read` takes the list as it is written.
template <class Spec, class Part, class Read>
Key<Spec> list(std::string_view name, const Keys<Part>& keys, std::string_view help, Read read) {
  return {name, help, fixed_text("a list of maps"),
          [name, read](MapReader& reader, Spec& spec) {
            if (const Value* value = reader.optional(name)) read(*value, spec);
          },
          [&keys] { return described(keys, "[]."); }};
}

// The rows of a part, for the map of the whole. `keys` must outlive them.
template <class Spec, class Field, class Part>
Keys<Spec> of_part(Field field, const Keys<Part>& keys) {
  Keys<Spec> all;
  all.reserve(keys.size());
  for (const Key<Part>& row : keys) {
    all.push_back({row.name, row.help, [&row] { return row.allowed(); },
                   [&row, field](MapReader& reader, Spec& spec) {
                     row.read(reader, std::invoke(field, spec));
                   }});
    if (row.parts) all.back().parts = [&row] { return row.parts(); };
    all.back().required = row.required;
  }
  return all;
}

}  // namespace key

}  // namespace costmodel
