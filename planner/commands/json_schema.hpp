// JSON Schema of the files that Shardplan reads, made of the records of keys, and of the JSON that
// it prints, made of what its writers write: editors complete and check by it. It is a net with
// wide meshes: what it refuses is wrong, and what only a reader can know (whether devices suffice)
// passes.
#pragma once

#include <string>
#include <vector>

namespace planner {

// "scenario", "model", ..., "answer".
std::vector<std::string> schema_kinds();

// The schema of a kind, as JSON; that of answers asks for the configurations, which may be in
// `config_path` too. Throws ConfigError for a kind that there is not.
std::string schema_text(const std::string& kind, const std::vector<std::string>& config_path = {});

}  // namespace planner
