#include "costmodel/config/search_path.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <sstream>
#include <utility>

#include "costmodel/base/error.hpp"
#include "costmodel/base/escape.hpp"
#include "costmodel/config/base_chain.hpp"
#include "costmodel/config/yaml.hpp"

namespace costmodel {

namespace fs = std::filesystem;

namespace {

bool looks_like_path(const std::string& name) {
  return name.find('/') != std::string::npos || name.ends_with(".yaml") || name.ends_with(".yml") ||
         name.ends_with(".json");
}

}  // namespace

Value& loaded(const ConfigPath& path, const std::string& file) {
  const auto found = path.loaded->find(file);
  if (found != path.loaded->end()) return found->second;
  return path.loaded->emplace(file, load_yaml(file)).first->second;
}

std::string file_from(const Mark& mark, const std::string& file) {
  const fs::path path(file);
  std::error_code unknown;
  const bool in_file = mark.line > 0 && fs::is_regular_file(mark.file, unknown);
  return path.is_absolute() || !in_file ? file
                                        : (fs::path(mark.file).parent_path() / path).string();
}

std::vector<std::string> config_names(const ConfigPath& path, const std::string& kind) {
  std::set<std::string> names;
  for (const auto& directory : path.directories) {
    std::error_code status;
    for (const auto& file : fs::directory_iterator(fs::path(directory) / kind, status)) {
      if (file.path().extension() == ".yaml") names.insert(file.path().stem().string());
    }
  }
  return {names.begin(), names.end()};
}

std::string find_config(const ConfigPath& path, const std::string& kind, const std::string& name,
                        const Mark& mark) {
  if (looks_like_path(name)) {
    // First in the directory of the file that names it, then in the working directory.
    const fs::path beside = fs::path(mark.file).parent_path() / name;
    std::error_code status;
    if (fs::path(name).is_relative() && fs::exists(beside, status)) return beside.string();
    if (fs::exists(name, status)) return name;
    throw ConfigError(mark, "no file " + quote(name),
                      "paths are relative to this file or the working directory");
  }
  for (const auto& directory : path.directories) {
    std::error_code status;
    const fs::path file = fs::path(directory) / kind / (name + ".yaml");
    if (fs::is_regular_file(file, status)) return file.string();
  }
  const auto names = config_names(path, kind);
  if (names.empty()) {
    throw ConfigError(mark, fmt::format("no {} {}", singular(kind), quote(name)),
                      "no configs were found; give --config-path DIR");
  }
  throw ConfigError(mark, fmt::format("no {} {}", singular(kind), quote(name)),
                    known_names(name, names));
}

ResolvedConfig resolve_config(const ConfigPath& path, const std::string& kind, const Value& value) {
  BaseChain chain = follow_bases(path, kind, value);
  std::string name = std::move(chain.name);
  return {std::move(name), resolved(std::move(chain))};
}

namespace fs = std::filesystem;

ConfigPath config_path(const std::vector<std::string>& given) {
  ConfigPath path;
  for (const auto& directory : given) {
    std::error_code fault;
    if (!fs::is_directory(directory, fault)) {
      throw ConfigError({}, "--config-path " + shortened(directory) + " is not a directory",
                        "name a directory with models/, clusters/, ... in it");
    }
    path.directories.push_back(directory);
  }
  if (const char* variable = std::getenv("SHARDPLAN_CONFIG_PATH")) {
    std::istringstream list(variable);
    for (std::string directory; std::getline(list, directory, ':');) {
      if (!directory.empty()) path.directories.push_back(directory);
    }
  }
  std::error_code status;
  const fs::path program = fs::read_symlink("/proc/self/exe", status);
  const fs::path installed = program.parent_path().parent_path() / "share/shardplan/configs";
  if (!status && fs::is_directory(installed, status))
    path.directories.push_back(installed.string());
#ifdef SHARDPLAN_SOURCE_CONFIGS
  path.directories.emplace_back(SHARDPLAN_SOURCE_CONFIGS);
#endif
  return path;
}

}  // namespace costmodel
