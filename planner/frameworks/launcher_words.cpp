#include "planner/frameworks/launcher_words.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <span>
#include <sstream>
#include <string>
#include <vector>

namespace planner {

namespace {

std::int64_t whole(std::string_view text) {
  std::int64_t value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  return read.ec == std::errc() && read.ptr == text.data() + text.size() && value > 0 ? value : 0;
}

// What a launcher's words give to one of the flags ("--nnodes 4", "-N 4", "-N4", "--nodes=4").
std::string_view value_of(const std::vector<std::string>& words,
                          std::span<const std::string_view> flags) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    for (const auto flag : flags) {
      if (words[i] == flag && i + 1 < words.size()) return words[i + 1];
      const std::string_view word = words[i];
      if (!word.starts_with(flag) || word.size() == flag.size()) continue;
      const std::string_view rest = word.substr(flag.size());
      if (rest.front() == '=') return rest.substr(1);
      if (flag.size() == 2 && whole(rest) > 0) return rest;
    }
  }
  return {};
}

std::int64_t number_of(const std::vector<std::string>& words,
                       std::span<const std::string_view> flags) {
  return whole(value_of(words, flags));
}

// GPUs a node that Slurm is asked for as a resource: "--gres=gpu:8", "--gres=gpu:h100:8,nvme:1".
std::int64_t gpus_of(const std::vector<std::string>& words) {
  static constexpr std::array<std::string_view, 1> flags{"--gres"};
  std::string_view list = value_of(words, flags);
  while (!list.empty()) {
    const std::size_t end = std::min(list.find(','), list.size());
    const std::string_view resource = list.substr(0, end);
    if (resource.starts_with("gpu:")) return whole(resource.substr(resource.rfind(':') + 1));
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return 0;
}

constexpr std::array<std::string_view, 4> node_flags{"--nnodes", "--num_nodes", "--nodes", "-N"};
constexpr std::array<std::string_view, 5> process_flags{
    "--nproc_per_node", "--nproc-per-node", "--num_gpus", "--ntasks-per-node", "--gpus-per-node"};

// "SLURM_GPUS_PER_NODE=h100:8" ends with the number.
std::int64_t variable_of(const ShellVariables& variables, const char* name) {
  const auto found = variables.find(name);
  if (found == variables.end() || found->second.size() != 1) return 0;
  const std::string_view text = found->second.front().text;
  return whole(text.substr(text.rfind(':') + 1));
}

// What Slurm sets in a job's environment (sbatch(1), OUTPUT ENVIRONMENT VARIABLES).
std::int64_t first_of(const ShellScript& script, std::span<const char* const> names) {
  for (const char* name : names)
    if (const std::int64_t value = variable_of(script.variables, name); value > 0) return value;
  return 0;
}

constexpr std::array<const char*, 2> node_variables{"SLURM_JOB_NUM_NODES", "SLURM_NNODES"};
constexpr std::array<const char*, 3> gpu_variables{"SLURM_GPUS_ON_NODE", "SLURM_GPUS_PER_NODE",
                                                   "SLURM_NTASKS_PER_NODE"};

}  // namespace

Launched launched_by(const ShellScript& script, const ShellWords& launcher) {
  Launched out;
  std::vector<std::string> words, batch;
  for (const auto& word : launcher) words.push_back(word.text);
  for (const auto& comment : script.comments) {
    std::istringstream text(comment);
    std::string one;
    if (!(text >> one) || one != "SBATCH") continue;
    while (text >> one) batch.push_back(one);
  }
  // What is submitted as it stands: `sbatch --nodes=4 job.sh`.
  for (const auto& command : script.commands) {
    if (command.front().text != "sbatch") continue;
    for (const auto& word : command) batch.push_back(word.text);
  }
  std::int64_t nodes = number_of(words, node_flags), each = number_of(words, process_flags);
  const bool torchrun = each > 0;
  if (nodes == 0) nodes = number_of(batch, node_flags);
  if (each == 0) each = number_of(batch, process_flags);
  if (nodes == 0) nodes = first_of(script, node_variables);
  if (each == 0) each = first_of(script, gpu_variables);
  // One task a node starts the processes of its GPUs.
  if (each <= 1 && !torchrun) each = std::max(each, gpus_of(batch));
  out.per_node = each;
  if (each == 0) out.nodes = nodes;
  if (nodes > 0 && each > 0) {
    out.world_size = nodes * each;
  } else if (const std::int64_t world = variable_of(script.variables, "WORLD_SIZE"); world > 0) {
    out.world_size = world;
    out.by_variable = true;
  } else if (torchrun && nodes == 0 &&
             !std::ranges::any_of(words, [](const auto& w) { return w.starts_with("--nnodes"); })) {
    out.world_size = each;  // torchrun starts one node unless told otherwise
  }
  return out;
}

Launched launched_by_variables(const ShellScript& script, std::size_t command) {
  Launched out;
  ShellVariables all = script.environments.at(command);
  all.insert(script.variables.begin(), script.variables.end());  // but for those it has itself
  out.per_node = variable_of(all, "NPROC_PER_NODE");
  out.world_size = out.per_node * std::max<std::int64_t>(1, variable_of(all, "NNODES"));
  if (out.world_size > 0) return out;
  const auto visible = all.find("CUDA_VISIBLE_DEVICES");
  if (visible == all.end() || visible->second.size() != 1) return out;
  const std::string& list = visible->second.front().text;
  out.visible = !list.empty();
  if (out.visible) out.world_size = out.per_node = 1 + std::ranges::count(list, ',');
  return out;
}

}  // namespace planner
