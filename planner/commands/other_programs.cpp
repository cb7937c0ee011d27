#include "planner/commands/other_programs.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

#include "costmodel/base/error.hpp"
#include "costmodel/base/path.hpp"
#include "costmodel/config/search_path.hpp"

namespace planner {

using namespace costmodel;

namespace {

std::string own_folder() { return folder_of(program_file()); }

}  // namespace

bool only_helps(int count, const char* const* arguments) {
  const bool there =
      path_exists(joined_path(own_folder(), std::string("shardplan-") + arguments[1]));
  const auto asks = [](std::string_view word) { return word == "--help" || word == "-h"; };
  return !there && std::any_of(arguments + 2, arguments + count, asks);
}

void hand_over(int count, char** arguments) {
  const std::string command = arguments[1];
  const std::string name = "shardplan-" + command;
  const std::string folder = own_folder(), program = joined_path(folder, name);
  if (!path_exists(program)) {
    throw ConfigError({},
                      fmt::format("shardplan: '{}' needs the program {}, which is not in {}",
                                  command, name, folder),
                      "build or install it there (it needs Eigen and libsodium)");
  }
  setenv("SHARDPLAN_CONFIG_PATH",
         fmt::format("{}", fmt::join(config_path({}).directories, ":")).c_str(), 1);
  std::vector<char*> words{arguments[0]};
  for (int i = 2; i < count; ++i) words.push_back(arguments[i]);
  words.push_back(nullptr);
  execv(program.c_str(), words.data());
  throw ConfigError(
      {}, fmt::format("shardplan: {} cannot be started: {}", program, std::strerror(errno)),
      "check its permissions");
}

}  // namespace planner
