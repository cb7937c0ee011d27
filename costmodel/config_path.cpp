#include "costmodel/config_path.hpp"

#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "costmodel/error.hpp"

namespace costmodel {

namespace fs = std::filesystem;

ConfigPath config_path(const std::vector<std::string>& given) {
  ConfigPath path;
  for (const auto& directory : given) {
    if (!fs::is_directory(directory)) {
      throw ConfigError({}, "--config-path " + directory + " is not a directory",
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
