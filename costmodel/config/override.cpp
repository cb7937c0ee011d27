#include "costmodel/config/override.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "costmodel/base/escape.hpp"
#include "costmodel/config/yaml.hpp"

namespace costmodel {

namespace {

// Each key is a map within a map, and a call where these are read and freed.
void require_shallow(const std::string& path, const Mark& mark) {
  constexpr std::ptrdiff_t deepest = 32;  // far more than any key has
  if (std::ranges::count(path, '.') < deepest) return;
  throw ConfigError(mark, fmt::format("{} has more than {} keys", quote(path), deepest),
                    "write key.path=value, such as plan.tp=8");
}

bool names_file(const std::string& key, bool at_root) {
  return at_root ? key == "model" || key == "cluster" || key == "plan"
                 : key == "device" || key == "stack";
}

}  // namespace

void assign_path(Value& root, const std::string& assignment, const Mark& mark) {
  const auto equals = assignment.find('=');
  if (equals == std::string::npos || equals == 0) {
    throw ConfigError(mark, quote(assignment) + " is not an assignment",
                      "write key.path=value, such as plan.tp=8");
  }
  Value* at = &root;
  std::string path = assignment.substr(0, equals);
  require_shallow(path, mark);
  for (std::size_t from = 0;;) {
    const auto dot = path.find('.', from);
    const std::string key = path.substr(from, dot == std::string::npos ? dot : dot - from);
    if (key.empty()) {
      throw ConfigError(mark, quote(path) + " has an empty key",
                        "write key.path=value, such as plan.tp=8");
    }
    if (dot == std::string::npos) {
      if (assignment.find_first_not_of(' ', equals + 1) == std::string::npos) {
        throw ConfigError(mark, quote(path) + " is given no value",
                          "write key.path=value, such as plan.tp=8");
      }
      Value value = parse_yaml(assignment.substr(equals + 1), mark.file);
      // Inside a list or map the parsed line and column are kept; a plain value gets the
      // assignment's mark.
      if (value.is_scalar() || value.kind == Value::Kind::null) value.mark = mark;
      if (Value* item = at->item(key)) {
        *item = std::move(value);
      } else {
        at->set(key, std::move(value));
      }
      return;
    }
    Value* next = at->kind == Value::Kind::sequence ? at->item(key) : at->find(key);
    if (next == nullptr) {
      Value map;
      map.kind = Value::Kind::map;
      map.mark = mark;
      at->set(key, std::move(map));
      next = at->find(key);
    } else if (next->is_scalar() && names_file(key, from == 0)) {
      Value map;  // `model: NAME` or `plan: auto` with one key of its own: {base: NAME, key: ...}
      map.kind = Value::Kind::map;
      map.mark = next->mark;
      *next = on_top_of(*next, std::move(map));
    } else if (next->kind == Value::Kind::sequence) {
      const std::string place = path.substr(dot + 1, path.find('.', dot + 1) - dot - 1);
      if (next->item(place) == nullptr) {
        throw ConfigError(
            mark, fmt::format("{} has no place {}", quote(path.substr(0, dot)), quote(place)),
            fmt::format("it is a list of {}; places count from 0", next->items.size()));
      }
    } else if (!next->is_map() && next->kind != Value::Kind::null) {
      throw ConfigError(mark, quote(path.substr(0, dot)) + " is not a map",
                        "only maps and lists have keys below them");
    }
    at = next;
    from = dot + 1;
  }
}

}  // namespace costmodel
