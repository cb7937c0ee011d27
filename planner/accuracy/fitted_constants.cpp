#include "planner/accuracy/fitted_constants.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "costmodel/base/escape.hpp"
#include "costmodel/base/path.hpp"
#include "costmodel/base/unit_text.hpp"
#include "costmodel/config/map_reader.hpp"
#include "costmodel/config/yaml.hpp"

namespace planner {

using namespace costmodel;

namespace {

struct Place {
  std::string kind, name;
};

Place place_of(const std::string& file, const costmodel::Mark& mark) {
  const auto slash = file.find('/');
  if (slash == std::string::npos) {
    throw ConfigError(mark, fmt::format("{} names no configuration", costmodel::quote(file)),
                      "write KIND/NAME, such as devices/a100-sxm4-80gb");
  }
  return {file.substr(0, slash), file.substr(slash + 1)};
}

Value& loaded_file(const std::string& file, const ConfigPath& path) {
  const Place place = place_of(file, {});
  const std::string at = costmodel::find_config(path, place.kind, place.name, {});
  return loaded(path, at);
}

// The value at a dotted path; an item of a list is named by its `name`.
Value* at_key(Value& root, const std::string& key) {
  Value* at = &root;
  for (std::size_t from = 0; at != nullptr;) {
    const auto dot = key.find('.', from);
    const std::string part = key.substr(from, dot == std::string::npos ? dot : dot - from);
    if (at->kind == Value::Kind::sequence) {
      const auto item = std::ranges::find_if(at->items, [&](const Value& v) {
        const Value* name = v.find("name");
        return name != nullptr && name->text == part;
      });
      at = item == at->items.end() ? nullptr : &*item;
    } else {
      at = at->find(part);
    }
    if (dot == std::string::npos) break;
    from = dot + 1;
  }
  return at;
}

// A quantity of any dimension, in its base unit.
double number_of(const Value& value, const std::string& key) {
  using costmodel::Dimension;
  for (const auto dimension : {Dimension::count, Dimension::time, Dimension::size,
                               Dimension::bandwidth, Dimension::rate}) {
    const auto parsed = costmodel::parse_quantity(value.text, dimension);
    if (parsed.value) return *parsed.value;
  }
  throw ConfigError(value.mark,
                    fmt::format("{}: {} is not a number", costmodel::shortened(key),
                                costmodel::quote(value.text)),
                    "name a key that holds a number");
}

}  // namespace

std::string constants_file(const std::string& given, const ConfigPath& path) {
  if (!given.empty()) return given;
  for (const auto& directory : path.directories) {
    std::string file = costmodel::joined_path(directory, "fit.yaml");
    if (costmodel::is_regular_file(file)) return file;
  }
  throw ConfigError({}, "shardplan: no fit.yaml in any directory of configurations",
                    "name the file of constants: --fit FILE");
}

std::vector<FittedConstant> read_constants(const std::string& constants_file,
                                           const ConfigPath& path) {
  const Value root = costmodel::load_yaml(constants_file);
  MapReader reader(root, "constants");
  const Value& list = reader.required("constants");
  reader.optional("notes");
  reader.finish();
  if (list.kind != Value::Kind::sequence || list.items.empty()) {
    throw ConfigError(list.mark, "constants is not a list of constants",
                      "write - {name: ..., in: [KIND/NAME, ...], key: ...}");
  }
  std::vector<FittedConstant> constants;
  for (const Value& item : list.items) {
    MapReader one(item, "constant");
    FittedConstant c;
    c.name = read_text(one.required("name"), "name");
    for (const Value& name : one.required("in").items) c.files.push_back(read_text(name, "in"));
    c.key = read_text(one.required("key"), "key");
    const auto number = [&](const char* key) {
      return one.number(key, costmodel::Dimension::count, 0, 1e15);
    };
    c.low = number("low").value_or(1e-12);
    c.high = number("high").value_or(1e12);
    c.prior = number("prior").value_or(0);
    c.spread = number("spread").value_or(0);
    if (const Value* from = one.optional("from")) c.from = read_text(*from, "from");
    if (const Value* is = one.optional("is")) c.is = read_text(*is, "is");
    one.finish();
    if (c.low > c.high) {
      throw ConfigError(one.mark_of("low"),
                        fmt::format("low {:g} is above high {:g}", c.low, c.high), "exchange them");
    }
    if (c.files.empty()) throw ConfigError(item.mark, "in: is empty", "name KIND/NAME");
    for (const auto& file : c.files) {
      const Value* now = at_key(loaded_file(file, path), c.key);
      if (now == nullptr) {
        throw ConfigError(item.mark,
                          fmt::format("{} has no key {}", costmodel::shortened(file),
                                      costmodel::shortened(c.key)),
                          "name a key that the file holds");
      }
      const double value = number_of(*now, c.key);
      if (file == c.files.front()) c.value = value;
      c.ratio.push_back(value / c.value);
    }
    if (c.prior == 0) c.prior = c.value;
    constants.push_back(c);
  }
  return constants;
}

ConstantPlaces::ConstantPlaces(const std::vector<FittedConstant>& constants,
                               const ConfigPath& path) {
  for (const auto& c : constants) {
    auto& places = places_.emplace_back();
    for (std::size_t f = 0; f < c.files.size(); ++f) {
      Value* at = at_key(loaded_file(c.files[f], path), c.key);
      if (at != nullptr) places.push_back({at, c.ratio[f]});
    }
  }
}

void ConstantPlaces::set(std::size_t constant, double value) {
  for (const Place& place : places_[constant]) {
    *place.at = costmodel::scalar_value(fmt::format("{:.6g}", value * place.ratio), place.at->mark);
  }
}

}  // namespace planner
