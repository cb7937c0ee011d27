// Where configurations are looked for: --config-path, $SHARDPLAN_CONFIG_PATH, beside the program,
// the source tree. And how they are found there by name: NAME.yaml in models/, devices/, clusters/,
// stacks/ or scenarios/ of each directory of the search path, a file's path, or a map; maps may
// start from another with `base:`.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "costmodel/config/value.hpp"

namespace costmodel {

struct ResidualFiles;  // tables of residuals already read, see residuals.hpp

struct ConfigPath {
  std::vector<std::string> directories;  // first match wins
  // Files already read: many scenarios share a cluster and a stack.
  std::shared_ptr<std::map<std::string, Value>> loaded =
      std::make_shared<std::map<std::string, Value>>();
  mutable std::shared_ptr<ResidualFiles> residuals = nullptr;
};

// Stems of all files of a kind ("models", "devices", ...), sorted, each once.
std::vector<std::string> config_names(const ConfigPath& path, const std::string& kind);

// The file for `name` (a path when it holds '/' or ends in .yaml, .yml or .json; else a stem to
// look up). Throws ConfigError at `mark` with the nearest known names.
std::string find_config(const ConfigPath& path, const std::string& kind, const std::string& name,
                        const Mark& mark);

struct ResolvedConfig {
  std::string name;  // the stem, or "" for a map written in place
  Value value;       // a map; `base` resolved and gone
};

// A name, a path, or a map. `base:` chains are followed; a cycle is an error that prints the chain.
ResolvedConfig resolve_config(const ConfigPath& path, const std::string& kind, const Value& value);

// The directories to search, `given` ones first. Throws ConfigError when one of them is no
// directory.
ConfigPath config_path(const std::vector<std::string>& given);

}  // namespace costmodel
