#include "planner/batch/batch_jobs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include "costmodel/base/escape.hpp"
#include "costmodel/base/path.hpp"
#include "costmodel/cli/command_line.hpp"
#include "costmodel/config/yaml.hpp"
#include "costmodel/scenario/model_operand.hpp"

namespace planner {

using namespace costmodel;

namespace {

constexpr std::array<std::string_view, 6> commands{"plan",  "evaluate", "explain",
                                                   "sweep", "compare",  "simulate"};
// What the batch itself says of a report.
constexpr std::array<std::string_view, 10> taken{
    "--out",   "--format",         "--quiet",     "--reproducible", "--list-inputs",
    "--trace", "--write-schedule", "--placement", "--page",         "--help"};
constexpr std::array<std::string_view, 2> reserved{"index", "journal"};

std::vector<std::string> files_in(const std::string& folder) {
  std::vector<std::string> files;
  for (const FolderEntry& entry : entries_of(folder)) {
    const std::string ending = ending_of(entry.name);
    const bool hidden = entry.name.starts_with('.');
    if (!hidden && (ending == ".yaml" || ending == ".yml") && entry.regular)
      files.push_back(joined_path(folder, entry.name));
  }
  return files;
}

std::vector<std::string> files_of(const std::string& operand, const ConfigPath& path) {
  std::vector<std::string> files;
  if (is_folder(operand)) {
    files = files_in(operand);
  } else if (!path_exists(operand) && operand.find_first_of("*?[") != std::string::npos) {
    files = files_like(operand);
  } else {
    return {operand_file(operand, path)};
  }
  if (files.empty()) {
    throw ConfigError(
        {operand, 0, 0}, "names no scenario",
        "name a file, a folder with *.yaml in it, or a pattern such as 'runs/*.yaml'");
  }
  return files;
}

// Why what a folder or a pattern found is not read: a link that leads elsewhere, which came with
// the folder. A file that is named is meant.
std::string fault_of_link(const std::string& operand, const std::string& file,
                          const ConfigPath& path) {
  if (path_exists(operand) && !is_folder(operand)) return {};
  const std::string folder = folder_of(file);
  try {
    check_reach(path, folder.empty() ? "." : folder, file, {});
  } catch (const ConfigError& error) {
    return error.what();
  }
  return {};
}

// The command of the scenario, if it has one: "" where it is no text. What is wrong with the file
// is told by the command.
std::optional<std::string> own_command(const std::string& file) {
  try {
    const Value root = load_yaml(file);
    const Value* own = root.find("command");
    return own == nullptr ? std::nullopt : std::optional(own->text);
  } catch (const ConfigError&) {
    return {};
  }
}

std::string fault_of(const std::vector<std::string>& words) {
  if (words.empty() || std::ranges::find(commands, words.front()) == commands.end()) {
    return fmt::format("{}: not a command of a batch; allowed: {}",
                       quote(words.empty() ? "" : words.front()), fmt::join(commands, ", "));
  }
  for (const auto& word : words) {
    const std::string flag = word.substr(0, word.find('='));
    if (std::ranges::find(taken, flag) != taken.end())
      return fmt::format("{}: {} is said by the batch; leave it out", words.front(), flag);
  }
  return {};
}

// The last `folders` folders and the stem of a path: "a-b-x".
std::string name_of(const std::string& file, std::size_t folders) {
  std::string name = stem_of(file), above = folder_of(file);
  for (; folders > 0 && !file_name_of(above).empty(); --folders, above = folder_of(above))
    name.insert(0, file_name_of(above) + "-");
  return name;
}

// Gives files of one name more of their folders, until the names differ.
void name_apart(std::vector<BatchJob>& jobs) {
  constexpr std::size_t deepest = 64;
  for (std::size_t folders = 0;; ++folders) {
    std::map<std::string, std::vector<BatchJob*>> by_name;
    for (auto& job : jobs) by_name[job.name].push_back(&job);
    bool apart = true;
    for (auto& [name, same] : by_name) {
      if (same.size() == 1) continue;
      apart = false;
      if (folders == deepest) {
        throw ConfigError(
            {same.back()->file, 0, 0},
            fmt::format("has a report of the name of that of {}", quote(same.front()->file)),
            "rename one of them");
      }
      for (BatchJob* job : same) job->name = name_of(job->file, folders + 1);
    }
    if (apart) return;
  }
}

}  // namespace

std::vector<BatchJob> batch_jobs(const std::vector<std::string>& operands, const std::string& usual,
                                 const ConfigPath& path) {
  std::vector<BatchJob> jobs;
  std::set<std::string> seen;
  for (const auto& operand : operands) {
    for (const auto& found : files_of(operand, path)) {
      const std::string file = normal_path(found);
      if (!seen.insert(file).second) continue;
      const std::string outside = fault_of_link(operand, file, path);
      const std::string command = outside.empty() ? own_command(file).value_or(usual) : usual;
      BatchJob job{name_of(file, 0), file, split_words(command), {}};
      if (std::ranges::find(reserved, job.name) != reserved.end()) job.name = name_of(file, 1);
      job.fault = outside.empty() ? fault_of(job.words) : outside;
      jobs.push_back(std::move(job));
    }
  }
  name_apart(jobs);
  return jobs;
}

}  // namespace planner
