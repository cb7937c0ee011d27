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
#include "costmodel/config/yaml.hpp"

namespace costmodel {

namespace fs = std::filesystem;

namespace {

bool looks_like_path(const std::string& name) {
  return name.find('/') != std::string::npos || name.ends_with(".yaml") || name.ends_with(".yml") ||
         name.ends_with(".json");
}

// "cluster" for the folder "clusters".
std::string singular(const std::string& kind) { return kind.substr(0, kind.size() - 1); }

// The files that `base:` has led through: as they were named, and as they are. One file has many
// names: ./a.yaml, ././a.yaml, a link.
struct Chain {
  std::vector<std::string> names, files;
};

constexpr std::size_t longest_chain = 64;

// "a.yaml -> b.yaml -> a.yaml"; the middle of a long chain is left out.
std::string told(const Chain& chain) {
  constexpr std::size_t shown = 4;  // at either end
  std::vector<std::string> names;
  for (std::size_t i = 0; i < chain.names.size(); ++i) {
    const bool told = i < shown || i + shown >= chain.names.size();
    if (told) names.push_back(shortened(printable(chain.names[i])));
    if (!told && i == shown) names.emplace_back("...");
  }
  return fmt::format("{}", fmt::join(names, " -> "));
}

// Adds a file to the chain; throws at `mark` when it closes a ring.
void follow(Chain& chain, const std::string& file, const Mark& mark) {
  std::error_code status;
  const std::string real = fs::weakly_canonical(file, status).string();
  const bool ring = std::find(chain.files.begin(), chain.files.end(), real) != chain.files.end();
  chain.names.push_back(file);
  chain.files.push_back(real);
  if (ring) throw ConfigError(mark, "base: goes in a circle", "break the chain " + told(chain));
  if (chain.files.size() > longest_chain) {
    throw ConfigError(mark, fmt::format("base: leads through more than {} files", longest_chain),
                      "shorten the chain " + told(chain));
  }
}

ResolvedConfig resolve(const ConfigPath& path, const std::string& kind, const Value& value,
                       Chain& chain) {
  if (value.is_scalar()) {
    const std::string file = find_config(path, kind, value.text, value.mark);
    follow(chain, file, value.mark);
    const Value& inside = loaded(path, file);
    if (inside.is_scalar()) {  // never taken as a name: it may be any file of this machine
      throw ConfigError(inside.mark, fmt::format("this file of a {} is not a map", singular(kind)),
                        "write key: value, one a line");
    }
    ResolvedConfig found = resolve(path, kind, inside, chain);
    found.name = fs::path(file).stem().string();
    return found;
  }
  if (!value.is_map()) {
    throw ConfigError(value.mark,
                      fmt::format("{} is neither a name, a file nor a map", singular(kind)),
                      "write a name, a path or {key: value, ...}");
  }
  const Value* base = value.find("base");
  if (base == nullptr) {
    for (const auto& entry : value.entries) {
      if (!is_misspelling(entry.key, "base")) continue;
      throw ConfigError(entry.key_mark,
                        fmt::format("{} has no key {}", singular(kind), quote(entry.key)),
                        "did you mean 'base'?");
    }
    return {"", value};
  }
  if (!base->is_scalar())
    throw ConfigError(base->mark, "base is not a name", "name a configuration or a file");
  ResolvedConfig below = resolve(path, kind, *base, chain);
  Value over = value;
  std::erase_if(over.entries, [](const Value::Entry& entry) { return entry.key == "base"; });
  return {below.name, merged(below.value, over)};
}

}  // namespace

Value& loaded(const ConfigPath& path, const std::string& file) {
  const auto found = path.loaded->find(file);
  if (found != path.loaded->end()) return found->second;
  return path.loaded->emplace(file, load_yaml(file)).first->second;
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
  Chain chain;
  return resolve(path, kind, value, chain);
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
