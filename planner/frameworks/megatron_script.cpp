#include "planner/frameworks/megatron_script.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <span>
#include <sstream>
#include <vector>

#include "planner/exchange/shell_script.hpp"

namespace planner {

namespace {

bool is_flag(const std::string& word) { return word.size() > 2 && word.starts_with("--"); }
bool is_program(const std::string& word) { return word.ends_with(".py"); }

// A quoted command ("bash -c '...'") is words as well.
ShellWords split_again(const ShellWords& words) {
  ShellWords all;
  for (const auto& word : words) {
    const bool command = word.text.find(".py ") != std::string::npos;
    if (!command) {
      all.push_back(word);
      continue;
    }
    std::istringstream text(word.text);
    for (std::string one; text >> one;) all.push_back({one, word.mark, ""});
  }
  return all;
}

// Where the program of a command begins; its size when there is none with flags behind it.
std::size_t program_of(const ShellWords& words) {
  const auto found =
      std::ranges::find_if(words, [](const ShellWord& word) { return is_program(word.text); });
  const bool flags =
      std::any_of(found, words.end(), [](const ShellWord& w) { return is_flag(w.text); });
  return flags ? static_cast<std::size_t>(found - words.begin()) : words.size();
}

struct Command {
  ShellWords launcher, arguments;
};

// The last command that runs a Python program with flags; else all words are a list of arguments.
Command command_of(const ShellScript& script) {
  Command all;
  for (auto at = script.commands.rbegin(); at != script.commands.rend(); ++at) {
    const ShellWords words = split_again(*at);
    const std::size_t program = program_of(words);
    if (program == words.size()) continue;
    const auto middle = words.begin() + static_cast<std::ptrdiff_t>(program);
    return {ShellWords(words.begin(), middle), ShellWords(middle + 1, words.end())};
  }
  for (const auto& words : script.commands)
    all.arguments.insert(all.arguments.end(), words.begin(), words.end());
  return all;
}

std::vector<MegatronArgument> arguments_of(const ShellWords& words) {
  std::vector<MegatronArgument> list;
  for (const auto& word : words) {
    if (is_flag(word.text)) {
      const std::size_t equals = word.text.find('=');
      list.push_back({word.text.substr(0, equals), {}, word.mark, word.unknown});
      if (equals != std::string::npos) list.back().values.push_back(word.text.substr(equals + 1));
    } else if (!list.empty()) {
      list.back().values.push_back(word.text);
      if (!word.unknown.empty()) list.back().unknown = word.unknown;
    }
  }
  return list;
}

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

std::int64_t variable_of(const ShellScript& script, const char* name) {
  const auto found = script.variables.find(name);
  const bool one = found != script.variables.end() && found->second.size() == 1;
  return one ? whole(found->second.front().text) : 0;
}

// Nodes and processes a node: of the launcher, else of the #SBATCH lines; else the script's own
// WORLD_SIZE.
void read_world(const ShellScript& script, const ShellWords& launcher, MegatronArguments& out) {
  std::vector<std::string> words, batch;
  for (const auto& word : launcher) words.push_back(word.text);
  for (const auto& comment : script.comments) {
    std::istringstream text(comment);
    std::string one;
    if (!(text >> one) || one != "SBATCH") continue;
    while (text >> one) batch.push_back(one);
  }
  std::int64_t nodes = number_of(words, node_flags), each = number_of(words, process_flags);
  const bool torchrun = each > 0;
  if (nodes == 0) nodes = number_of(batch, node_flags);
  if (each == 0) each = number_of(batch, process_flags);
  // One task a node starts the processes of its GPUs.
  if (each <= 1 && !torchrun) each = std::max(each, gpus_of(batch));
  out.per_node = each;
  if (nodes > 0 && each > 0) {
    out.world_size = nodes * each;
  } else if (const std::int64_t world = variable_of(script, "WORLD_SIZE"); world > 0) {
    out.world_size = world;
  } else if (torchrun && nodes == 0 &&
             !std::ranges::any_of(words, [](const auto& w) { return w.starts_with("--nnodes"); })) {
    out.world_size = each;  // torchrun starts one node unless told otherwise
  }
}

}  // namespace

bool holds_megatron_flags(const std::string& text) {
  return text.find("--num-layers") != std::string::npos ||
         text.find("--tensor-model-parallel-size") != std::string::npos;
}

MegatronArguments read_megatron_script(const std::string& text, const std::string& file) {
  const ShellScript script = read_shell(text, file);
  const Command command = command_of(script);
  MegatronArguments out;
  out.list = arguments_of(command.arguments);
  read_world(script, command.launcher, out);
  if (script.branches) {
    out.notes.emplace_back(
        "the script has conditions or loops: every branch is read, and the last value counts");
  }
  return out;
}

}  // namespace planner
