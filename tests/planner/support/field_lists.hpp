// Fields that a framework's configuration has, from a list with its sources in its head.
#pragma once

#include <doctest/doctest.h>

#include <fstream>
#include <set>
#include <string>

namespace field_lists {

// "section.field = default  # remark", a line each; '#' begins a comment.
inline std::set<std::string> read(const std::string& name) {
  std::ifstream file(std::string(SHARDPLAN_SOURCE_DIR) + "/tests/planner/support/" + name);
  std::set<std::string> fields;
  for (std::string line; std::getline(file, line);)
    if (!line.empty() && line.front() != '#') fields.insert(line.substr(0, line.find(' ')));
  REQUIRE(fields.size() > 50);
  return fields;
}

}  // namespace field_lists
