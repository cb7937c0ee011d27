// JSON Schema of the files that Shardplan reads and of the JSON that it prints, made of the records
// of keys: editors complete and check by it. It is a net with wide meshes: what it refuses is
// wrong, and what only a reader can know (whether devices suffice) passes.
#pragma once

#include <string>
#include <vector>

namespace planner {

// "scenario", "model", ..., "answer".
std::vector<std::string> schema_kinds();

// The schema of a kind, as JSON. Throws ConfigError for a kind that there is not.
std::string schema_text(const std::string& kind);

}  // namespace planner
