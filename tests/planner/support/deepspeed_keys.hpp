// Keys that DeepSpeed documents, from the list beside.
#pragma once

#include <doctest/doctest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

namespace deepspeed_keys {

inline std::set<std::string> documented() {
  std::ifstream file(std::string(SHARDPLAN_SOURCE_DIR) +
                     "/tests/planner/support/deepspeed_keys.txt");
  std::set<std::string> keys;
  for (std::string line; std::getline(file, line);)
    if (!line.empty() && line.front() != '#') keys.insert(line);
  REQUIRE(keys.size() > 50);
  return keys;
}

// Every key of the map is one of them; "*" stands for any key below.
inline void check(const nlohmann::json& map, const std::string& prefix = "") {
  static const std::set<std::string> known = documented();
  for (const auto& [key, value] : map.items()) {
    const std::string name = prefix + key;
    CAPTURE(name);
    if (value.is_object()) {
      check(value, name + ".");
    } else {
      CHECK((known.contains(name) || known.contains(prefix + "*")));
    }
  }
}

}  // namespace deepspeed_keys
