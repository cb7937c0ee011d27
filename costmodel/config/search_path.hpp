// Finds configurations. The directories are, in order: --config-path, $SHARDPLAN_CONFIG_PATH, the
// program's install directory (or what a library's user names), the source tree. A configuration is
// a file path, a map, or the name of a file NAME.yaml in models/, devices/, clusters/, stacks/ or
// scenarios/ of one of the directories. A map may inherit from another one with `base:`.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "costmodel/config/value.hpp"

namespace costmodel {

struct ResidualFiles;  // a cache of residual tables, see scenario/residuals.hpp

struct ConfigPath {
  std::vector<std::string> directories;  // first match wins
  std::vector<std::string> allowed;      // folders that files may name files of too
  // Files already read: many scenarios use the same cluster and stack, and a pipe is read once.
  std::shared_ptr<std::map<std::string, Value>> loaded =
      std::make_shared<std::map<std::string, Value>>();
  // What was read and understood in part, a sentence each, for the user of any command.
  std::shared_ptr<std::vector<std::string>> left_out = std::make_shared<std::vector<std::string>>();
  mutable std::shared_ptr<ResidualFiles> residuals = nullptr;
};

// The tree of a file, which is read only once. Throws as load_yaml().
Value& loaded(const ConfigPath& path, const std::string& file);

// The sorted, unique stems of all files of a kind ("models", "devices", ...).
std::vector<std::string> config_names(const ConfigPath& path, const std::string& kind);

// The files of a kind that are none: links that lead nowhere, folders.
std::vector<std::string> unreadable_configs(const ConfigPath& path, const std::string& kind);

// The file of `name`: a path when it contains '/' or ends in .yaml, .yml or .json, else a stem to
// look up. A model may be called as a hub has it, where no file is ("Qwen/Qwen2.5-7B-Instruct":
// models_named). Throws ConfigError at `mark` with the nearest known names.
std::string find_config(const ConfigPath& path, const std::string& kind, const std::string& name,
                        const Mark& mark);

// A file as the value at `mark` names it: relative to the file that it stands in; on the command
// line, to the working directory.
std::string file_from(const Mark& mark, const std::string& file);

// Whether a file lies in a folder or in a folder of it, links followed.
bool lies_in(const std::string& file, const std::string& folder);

// The folder that names in a file may lead into: its own; of what is no file (standard input) the
// working directory; "" for the command line and for text of no file, whose names may lead
// anywhere.
std::string reach_of(const Mark& mark);

// Throws ConfigError at `mark` where `file`, links followed, lies neither in the folder `reach` nor
// in the directories and allowed folders of `path`: what comes by mail or by clone reads nothing
// else of this machine. An empty `reach` allows everything.
void check_reach(const ConfigPath& path, const std::string& reach, const std::string& file,
                 const Mark& mark);

struct ResolvedConfig {
  std::string name;  // the stem; "" for an inline map
  Value value;       // a map with `base` resolved and removed
};

// Resolves a name, a path or a map, and follows `base:` chains through at most 64 files. Throws
// ConfigError for a ring and tells the chain, and for a file that is not a map.
ResolvedConfig resolve_config(const ConfigPath& path, const std::string& kind, const Value& value);

// The directories to search, `given` ones first, and the `allowed` folders (--allow-path). Throws
// ConfigError when one of either is not a directory.
ConfigPath config_path(const std::vector<std::string>& given,
                       const std::vector<std::string>& allowed = {});

// For a library, which no program's install directory belongs to: the directory of the configs that
// came with it. Call it once, before any thread.
void set_installed_configs(const std::string& directory);

}  // namespace costmodel
