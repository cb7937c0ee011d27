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
#include "costmodel/base/path.hpp"
#include "costmodel/config/base_chain.hpp"
#include "costmodel/config/everyday_name.hpp"
#include "costmodel/config/yaml.hpp"

namespace costmodel {

namespace fs = std::filesystem;

namespace {

bool looks_like_path(const std::string& name) {
  return name.find('/') != std::string::npos || name.ends_with(".yaml") || name.ends_with(".yml") ||
         name.ends_with(".json");
}

void require_directory(const std::string& flag, const std::string& directory,
                       const std::string& remedy) {
  if (is_folder(directory)) return;
  throw ConfigError({}, fmt::format("{} {} is not a directory", flag, shortened(directory)),
                    remedy);
}

// set_installed_configs()
std::string& library_configs() {
  static std::string directory;
  return directory;
}

// The file of a model that is called otherwise: "Qwen/Qwen2.5-7B-Instruct"; empty: none.
std::string file_called(const ConfigPath& path, const std::string& kind, const std::string& name) {
  const bool owner = std::ranges::count(name, '/') <= 1 && !name.starts_with('.');
  const bool file = name.ends_with(".yaml") || name.ends_with(".yml") || name.ends_with(".json");
  if (kind != "models" || !owner || file) return "";
  const auto models = models_named(path, name);
  return models.size() == 1 && models.front() != name ? find_config(path, kind, models.front(), {})
                                                      : "";
}

bool is_config(const FolderEntry& entry) { return entry.name.ends_with(".yaml"); }

}  // namespace

Value& loaded(const ConfigPath& path, const std::string& file) {
  const auto found = path.loaded->find(file);
  if (found != path.loaded->end()) return found->second;
  return path.loaded->emplace(file, load_yaml(file)).first->second;
}

std::string file_from(const Mark& mark, const std::string& file) {
  const fs::path path(file);
  const bool in_file = mark.line > 0 && is_regular_file(mark.file);
  return path.is_absolute() || !in_file ? file
                                        : (fs::path(mark.file).parent_path() / path).string();
}

bool lies_in(const std::string& file, const std::string& folder) {
  std::error_code status;
  const fs::path real = fs::weakly_canonical(fs::absolute(file, status), status);
  const fs::path above = fs::weakly_canonical(fs::absolute(folder, status), status);
  if (status || above.empty()) return false;
  const auto [end, at] = std::mismatch(above.begin(), above.end(), real.begin(), real.end());
  return end == above.end() || (end->empty() && std::next(end) == above.end());
}

std::string reach_of(const Mark& mark) {
  if (mark.line == 0 || !path_exists(mark.file)) return "";
  if (!is_regular_file(mark.file)) return ".";
  const std::string folder = fs::path(mark.file).parent_path().string();
  return folder.empty() ? "." : folder;
}

void check_reach(const ConfigPath& path, const std::string& reach, const std::string& file,
                 const Mark& mark) {
  if (reach.empty() || lies_in(file, reach)) return;
  const auto holds = [&](const std::string& folder) { return lies_in(file, folder); };
  if (std::ranges::any_of(path.directories, holds) || std::ranges::any_of(path.allowed, holds))
    return;
  const std::string folder = fs::path(file).lexically_normal().parent_path().string();
  throw ConfigError(mark, fmt::format("{} lies outside of the scenario's folder", quote(file)),
                    fmt::format("where that is meant, add --allow-path {}",
                                shell_word(folder.empty() ? "." : folder)));
}

std::vector<std::string> config_names(const ConfigPath& path, const std::string& kind) {
  std::set<std::string> names;
  for (const auto& directory : path.directories) {
    for (const FolderEntry& entry : entries_of(joined_path(directory, kind)))
      if (is_config(entry) && entry.regular) names.insert(stem_of(entry.name));
  }
  return {names.begin(), names.end()};
}

std::vector<std::string> unreadable_configs(const ConfigPath& path, const std::string& kind) {
  std::vector<std::string> files;
  for (const auto& directory : path.directories) {
    const std::string folder = joined_path(directory, kind);
    for (const FolderEntry& entry : entries_of(folder))
      if (is_config(entry) && !entry.regular) files.push_back(joined_path(folder, entry.name));
  }
  return files;
}

std::string find_config(const ConfigPath& path, const std::string& kind, const std::string& name,
                        const Mark& mark) {
  if (looks_like_path(name)) {
    // First in the directory of the file that names it, then in the working directory.
    const fs::path beside = fs::path(mark.file).parent_path() / name;
    std::error_code status;
    if (fs::path(name).is_relative() && fs::exists(beside, status)) return beside.string();
    if (fs::exists(name, status)) return name;
    if (std::string called = file_called(path, kind, name); !called.empty()) return called;
    throw ConfigError(mark, "no file " + quote(name),
                      kind == "models"
                          ? "paths are relative to this file or the working directory; "
                            "`shardplan list models` has the models with a name"
                          : "paths are relative to this file or the working directory");
  }
  for (const auto& directory : path.directories) {
    std::error_code status;
    const fs::path file = fs::path(directory) / kind / (name + ".yaml");
    if (fs::is_regular_file(file, status)) return file.string();
  }
  if (std::string called = file_called(path, kind, name); !called.empty()) return called;
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

ConfigPath config_path(const std::vector<std::string>& given,
                       const std::vector<std::string>& allowed) {
  ConfigPath path{.directories = given, .allowed = allowed};
  for (const auto& directory : given) {
    require_directory("--config-path", directory,
                      "name a directory with models/, clusters/, ... in it");
  }
  for (const auto& folder : allowed) {
    require_directory("--allow-path", folder, "name a folder that scenarios may name files of");
  }
  if (const char* variable = std::getenv("SHARDPLAN_CONFIG_PATH")) {
    std::istringstream list(variable);
    for (std::string directory; std::getline(list, directory, ':');) {
      if (!directory.empty()) path.directories.push_back(directory);
    }
  }
  const fs::path program = program_file();
  const fs::path installed = program.parent_path().parent_path() / "share/shardplan/configs";
  std::error_code status;
  if (!library_configs().empty()) {
    path.directories.push_back(library_configs());
  } else if (!program.empty() && fs::is_directory(installed, status)) {
    path.directories.push_back(installed.string());
  }
#ifdef SHARDPLAN_SOURCE_CONFIGS
  path.directories.emplace_back(SHARDPLAN_SOURCE_CONFIGS);
#endif
  return path;
}

void set_installed_configs(const std::string& directory) { library_configs() = directory; }

}  // namespace costmodel
