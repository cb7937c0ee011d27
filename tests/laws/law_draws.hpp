// How laws are held: scenarios are drawn by seed, each is held to the laws, and of one that breaks
// a law the smallest part that still breaks it is printed.
//
//   SHARDPLAN_LAW_DRAWS=100000 SHARDPLAN_LAW_SEED=1 ctest -R laws
#pragma once

#include <doctest/doctest.h>

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "costmodel/base/error.hpp"
#include "costmodel/config/yaml.hpp"
#include "tests/sanitized.hpp"

namespace laws {

inline std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

// The law that a scenario breaks, with its figures; none: it obeys all, or is refused.
using Judge = std::function<std::optional<std::string>(const std::string& yaml)>;

inline bool breaks(const std::string& yaml, const Judge& judge) {
  try {
    return judge(yaml).has_value();
  } catch (const costmodel::ConfigError&) {
    return false;  // what is refused obeys nothing
  }
}

// The maps of a tree, the root first, by the keys that lead to them.
inline void list_maps(const costmodel::Value& value, const std::vector<std::string>& path,
                      std::vector<std::vector<std::string>>& found) {
  if (!value.is_map()) return;
  found.push_back(path);
  for (const auto& entry : value.entries) {
    auto below = path;
    below.push_back(entry.key);
    list_maps(entry.value, below, found);
  }
}

inline costmodel::Value* at_path(costmodel::Value& root, const std::vector<std::string>& path) {
  costmodel::Value* value = &root;
  for (const auto& key : path) value = value->find(key);
  return value;
}

// Drops key after key while the scenario still breaks a law.
inline std::string shrunk(std::string yaml, const Judge& judge) {
  for (bool smaller = true; smaller;) {
    smaller = false;
    costmodel::Value tree = costmodel::parse_yaml(yaml, "drawn.yaml");
    std::vector<std::vector<std::string>> maps;
    list_maps(tree, {}, maps);
    for (const auto& path : maps) {
      const std::vector<costmodel::Value::Entry> entries = at_path(tree, path)->entries;
      for (const auto& entry : entries) {
        costmodel::Value less = costmodel::parse_yaml(yaml, "drawn.yaml");
        costmodel::Value* map = at_path(less, path);
        if (map == nullptr) continue;
        map->erase(entry.key);
        const std::string text = costmodel::to_yaml(less);
        if (!breaks(text, judge)) continue;
        yaml = text;
        smaller = true;
        break;
      }
      if (smaller) break;
    }
  }
  return yaml;
}

// Holds `count` drawn scenarios to the laws, from the seed of the environment on. `least`: of each
// hundred draws so many have to be accepted, or the laws hold of nothing.
inline void hold(std::uint64_t count, std::uint64_t least,
                 const std::function<std::string(std::uint64_t seed)>& draw, const Judge& judge) {
  const std::uint64_t first = from_environment("SHARDPLAN_LAW_SEED", 1);
  const std::uint64_t draws =
      from_environment("SHARDPLAN_LAW_DRAWS", sanitized ? count / 40 : count);
  std::uint64_t accepted = 0;
  for (std::uint64_t seed = first; seed < first + draws; ++seed) {
    std::string yaml;
    std::optional<std::string> broken;
    try {
      yaml = draw(seed);
      broken = judge(yaml);
      ++accepted;
    } catch (const costmodel::ConfigError&) {
      continue;
    }
    if (!broken) continue;
    const std::string small = shrunk(yaml, judge);
    FAIL_CHECK("seed ", seed, ": ", *broken, "\nsmallest scenario, ", *judge(small), ":\n", small);
  }
  CHECK(accepted * 100 >= draws * least);
}

}  // namespace laws
