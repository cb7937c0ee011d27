#include "costmodel/config/map_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "costmodel/base/escape.hpp"
#include "costmodel/config/synonyms.hpp"

namespace costmodel {

namespace {

constexpr std::size_t most_named = 40;  // keys of a map

std::string_view kind_name(const Value& value) {
  switch (value.kind) {
    case Value::Kind::null: return "nothing";
    case Value::Kind::scalar: return "a plain value";
    case Value::Kind::sequence: return "a list";
    case Value::Kind::map: return "a map";
  }
  return "";
}

const std::string& scalar_text(const Value& value, const std::string& what, const char* expected) {
  if (!value.is_scalar()) {
    throw ConfigError(value.mark, fmt::format("{} is {}", what, kind_name(value)),
                      fmt::format("write {}", expected));
  }
  return value.text;
}

std::string range_text(double least, double most, Dimension dimension) {
  const auto unit = base_unit(dimension);
  const std::string space = unit.empty() ? "" : " ";
  return fmt::format("allowed: {:g} to {:g}{}{}", least, most, space, unit);
}

}  // namespace

std::int64_t read_integer(const Value& value, const std::string& what, IntegerRange range) {
  const std::string& text = scalar_text(value, what, "a whole number");
  const std::string allowed = fmt::format("allowed: whole numbers {} to {}",
                                          format_integer(range.least), format_integer(range.most));
  std::int64_t number = 0;
  const char* begin = text.data() + (text.starts_with('+') && !text.starts_with("+-") ? 1 : 0);
  const auto [end, status] = std::from_chars(begin, text.data() + text.size(), number);
  const bool integral = status == std::errc() && end == text.data() + text.size();
  if (integral && !value.quoted) {
    if (number < range.least || number > range.most) {
      throw ConfigError(value.mark, fmt::format("{}: {} is out of range", what, shortened(text)),
                        allowed);
    }
    return number;
  }
  throw ConfigError(value.mark, fmt::format("{}: {} is not a whole number", what, quote(text)),
                    integral ? "leave out its quotes, which make it a text" : allowed);
}

double read_number(const Value& value, const std::string& what, Dimension dimension, double least,
                   double most) {
  const std::string& text = scalar_text(value, what, "a number");
  const ParsedQuantity parsed = parse_quantity(text, dimension);
  if (!parsed.value) {
    throw ConfigError(value.mark, fmt::format("{}: {}", what, parsed.why),
                      fmt::format("write it like {}", example_of(dimension)));
  }
  if (*parsed.value < least || *parsed.value > most) {
    const std::string meant = fmt::format("{} {}", text, usual_unit(dimension));
    const auto guess = parse_quantity(meant, dimension).value;  // none where text has a unit
    if (dimension != Dimension::count && guess && *guess >= least && *guess <= most) {
      throw ConfigError(
          value.mark,
          fmt::format("{}: {} {} is out of range", what, shortened(text), base_unit(dimension)),
          fmt::format("did you mean {}? {}", shortened(meant), range_text(least, most, dimension)));
    }
    throw ConfigError(value.mark, fmt::format("{}: {} is out of range", what, shortened(text)),
                      range_text(least, most, dimension));
  }
  return *parsed.value;
}

bool read_boolean(const Value& value, const std::string& what) {
  const std::string& text = scalar_text(value, what, "true or false");
  if (text == "true" || text == "True") return true;
  if (text == "false" || text == "False") return false;
  throw ConfigError(value.mark, fmt::format("{}: {} is neither true nor false", what, quote(text)),
                    "write true or false");
}

std::string read_text(const Value& value, const std::string& what) {
  return scalar_text(value, what, "a word");
}

Value with_plain_lengths(Value value) {
  for (auto& entry : value.entries) entry.value = with_plain_lengths(std::move(entry.value));
  if (!value.is_scalar() || value.quoted || value.text.empty()) return value;
  constexpr std::string_view kilo = "kK", mega = "mM";
  const char last = value.text.back();
  const bool has_kilo = kilo.find(last) != kilo.npos, has_mega = mega.find(last) != mega.npos;
  double number = 0;
  const char* const end = value.text.data() + value.text.size() - 1;
  const auto [read_to, status] = std::from_chars(value.text.data(), end, number);
  if ((!has_kilo && !has_mega) || status != std::errc() || read_to != end) return value;
  const double tokens = number * (has_kilo ? 1024.0 : 1024.0 * 1024.0);
  if (std::abs(tokens) < 1e15) value.text = fmt::format("{}", tokens);
  return value;
}

MapReader::MapReader(const Value& map, std::string what, std::vector<std::string_view> keys,
                     const std::string& example)
    : map_(map), what_(std::move(what)), expected_(std::move(keys)) {
  known_.reserve(map.entries.size() + 4);  // about as many keys are asked for
  if (map.kind == Value::Kind::map || map.kind == Value::Kind::null) return;
  std::string remedy =
      fmt::format("write a map: {{{}}}", example.empty() ? "key: value, ..." : example);
  if (!expected_.empty())
    remedy += "; " + known_names("", {expected_.begin(), expected_.end()}, most_named);
  throw ConfigError(map.mark, fmt::format("{} is {}", what_, kind_name(map)), remedy);
}

const Value* MapReader::optional(std::string_view key) {
  if (std::ranges::find(known_, key) == known_.end()) known_.emplace_back(key);
  const Value* value = map_.find(key);
  return value != nullptr && value->kind != Value::Kind::null ? value : nullptr;
}

const Value& MapReader::required(std::string_view key) {
  if (const Value* value = optional(key)) return *value;
  for (const auto& entry : map_.entries) {
    if (was_asked_for(entry.key) || std::ranges::count(expected_, entry.key) > 0) continue;
    const bool meant = is_misspelling(entry.key, std::string(key)) || means(entry.key, key);
    if (meant) unknown(entry, {std::string(key)});
    if (!expected_.empty()) unknown(entry, {expected_.begin(), expected_.end()});
  }
  throw ConfigError(map_.mark, fmt::format("{} lacks the key '{}'", what_, key),
                    fmt::format("add {}: ...", key));
}

bool MapReader::was_asked_for(std::string_view key) const {
  return std::ranges::find(known_, key) != known_.end();
}

// `keys`: of the map, or the one that is looked for.
void MapReader::unknown(const Value::Entry& entry, const std::vector<std::string>& keys) const {
  const auto meant =
      std::ranges::find_if(keys, [&](const auto& key) { return means(entry.key, key); });
  std::string elsewhere = meant_key(entry.key);
  // A key of such maps that this one does not have: of training alone, or of another kind of model.
  if (elsewhere == fmt::format("{}.{}", what_.substr(0, what_.find(' ')), entry.key))
    elsewhere.clear();
  const std::string near = nearest_name(entry.key, keys);
  std::string remedy = known_names(entry.key, keys, most_named);
  if (entry.key == "<<") {
    remedy = "YAML's merges are not read: write the keys, or base: FILE where there is one";
  } else if (meant != keys.end()) {
    remedy = fmt::format("did you mean '{}'?", *meant);
  } else if (near.empty() && !elsewhere.empty()) {
    remedy = fmt::format("did you mean '{}'?", elsewhere);
  } else if (keys.size() == 1) {
    remedy = fmt::format("did you mean '{}'?", keys.front());
  } else if (!near.empty() && keys.size() > most_named) {  // too many to be read on a line
    remedy = fmt::format("did you mean {}? `shardplan list keys WORD` finds others", quote(near));
  }
  // A file that has nothing of a scenario is another file, of which nothing is shown.
  const bool foreign =
      what_ == "scenario" && meant == keys.end() && near.empty() && elsewhere.empty() &&
      std::ranges::none_of(keys, [&](const auto& key) { return map_.find(key) != nullptr; });
  throw ConfigError(entry.key_mark,
                    foreign ? "this is no scenario: it has none of its keys"
                            : fmt::format("{} has no key {}", what_, quote(entry.key)),
                    remedy);
}

bool MapReader::is_auto(std::string_view key) {
  const Value* value = optional(key);
  return value != nullptr && value->is_scalar() && value->text == "auto";
}

std::optional<std::int64_t> MapReader::integer(std::string_view key, IntegerRange range) {
  const Value* value = optional(key);
  if (value == nullptr) return {};
  return read_integer(*value, std::string(key), range);
}

std::optional<std::int64_t> MapReader::tokens(std::string_view key, IntegerRange range) {
  const Value* value = optional(key);
  if (value == nullptr) return {};
  return read_integer(with_plain_lengths(*value), std::string(key), range);
}

std::optional<double> MapReader::number(std::string_view key, Dimension dimension, double least,
                                        double most) {
  const Value* value = optional(key);
  if (value == nullptr) return {};
  return read_number(*value, std::string(key), dimension, least, most);
}

double MapReader::required_number(std::string_view key, Dimension dimension, double least,
                                  double most) {
  required(key);
  return *number(key, dimension, least, most);
}

std::optional<bool> MapReader::boolean(std::string_view key) {
  const Value* value = optional(key);
  if (value == nullptr) return {};
  return read_boolean(*value, std::string(key));
}

std::optional<std::string> MapReader::text(std::string_view key) {
  const Value* value = optional(key);
  if (value == nullptr) return {};
  return read_text(*value, std::string(key));
}

std::optional<std::size_t> MapReader::one_of(std::string_view key,
                                             std::span<const std::string_view> names) {
  const Value* value = optional(key);
  if (value == nullptr) return {};
  const std::string word = read_text(*value, std::string(key));
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i] == word) return i;
  }
  throw ConfigError(value->mark, fmt::format("{}: {} is not known", key, quote(word)),
                    known_names(word, std::vector<std::string>(names.begin(), names.end())));
}

Mark MapReader::mark_of(std::string_view key) const {
  const Value* value = map_.find(key);
  return value != nullptr ? value->mark : map_.mark;
}

Mark MapReader::mark_of_any(std::initializer_list<std::string_view> keys) const {
  const auto written = [&](const auto& stands_above) {
    const auto at = std::ranges::find_if(keys, [&](std::string_view key) {
      const Value* value = map_.find(key);
      return value != nullptr && stands_above(value->mark.file);
    });
    return at != keys.end() ? *at : std::string_view();
  };
  const auto key = written([](const std::string& file) { return file.starts_with("--"); });
  if (!key.empty()) return mark_of(key);
  const auto of_file = written([&](const std::string& file) { return file == map_.mark.file; });
  return mark_of(of_file.empty() ? *keys.begin() : of_file);
}

std::vector<std::string_view> MapReader::unread() const {
  std::vector<std::string_view> keys;
  for (const auto& entry : map_.entries) {
    if (entry.value.kind != Value::Kind::null &&
        std::ranges::find(known_, entry.key) == known_.end())
      keys.push_back(entry.key);
  }
  return keys;
}

void MapReader::finish() const {
  for (const auto& entry : map_.entries)
    if (!was_asked_for(entry.key)) unknown(entry, known_);
}

}  // namespace costmodel
