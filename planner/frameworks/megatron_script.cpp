#include "planner/frameworks/megatron_script.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <sstream>
#include <utility>
#include <vector>

#include "costmodel/base/escape.hpp"
#include "costmodel/base/input_file.hpp"
#include "costmodel/base/path.hpp"
#include "costmodel/config/search_path.hpp"
#include "costmodel/config/yaml.hpp"
#include "planner/exchange/lines.hpp"
#include "planner/exchange/shell_script.hpp"
#include "planner/frameworks/launcher_words.hpp"
#include "planner/frameworks/megatron_words.hpp"

namespace planner {

namespace {

constexpr std::string_view priced_upon = "priced upon the stack ";

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
  ShellWord program = {};
};

// Megatron-LM's servers and generators take the arguments that size a model, as training does.
bool serves(const ShellWord& program) {
  const std::string name = costmodel::file_name_of(program.text);
  return std::ranges::any_of(
      std::array{"text_gen", "inference", "generate"},
      [&](const char* word) { return name.find(word) != std::string::npos; });
}

[[noreturn]] void refuse_serving(const ShellWord& program) {
  throw costmodel::ConfigError(
      program.mark,
      fmt::format("{} serves or generates, it does not train",
                  costmodel::quote(costmodel::shortened(program.text))),
      "give the script that trains; or import vllm FILE, import sglang FILE");
}

// Whether words size a model: a script may convert checkpoints or start a tool afterwards.
bool is_training(const ShellWords& words) {
  return std::ranges::any_of(words, [](const ShellWord& word) {
    return word.text.starts_with("--num-layers") || word.text.starts_with("--hybrid-") ||
           word.text.starts_with("--tensor-model-parallel-size");
  });
}

// The last command that runs a Python program with the sizes of a model, else with any flags; else
// all words are a list of arguments.
Command command_of(const ShellScript& script) {
  Command any, all;
  for (auto at = script.commands.rbegin(); at != script.commands.rend(); ++at) {
    const ShellWords words = split_again(*at);
    const std::size_t program = program_of(words);
    if (program == words.size()) continue;
    const auto middle = words.begin() + static_cast<std::ptrdiff_t>(program);
    Command found{ShellWords(words.begin(), middle), ShellWords(middle + 1, words.end()), *middle};
    const bool serving = serves(*middle);
    if (is_training(found.arguments) && !serving) return found;
    if (any.arguments.empty() || serves(any.program)) any = std::move(found);
  }
  if (serves(any.program)) refuse_serving(any.program);
  for (const auto& words : script.commands)
    all.arguments.insert(all.arguments.end(), words.begin(), words.end());
  if (is_training(all.arguments)) return any.arguments.empty() ? all : any;
  // A command that another program gets as text; or a file that only assigns, which another script
  // reads: all flags of its variables.
  ShellWords flags;
  for (const auto& [name, words] : script.variables) {
    ShellWords flat;
    for (const auto& word : words) {
      std::istringstream text(word.text);
      for (std::string one; text >> one;) flat.push_back({one, word.mark, ""});
    }
    const auto program = static_cast<std::ptrdiff_t>(program_of(flat));
    const bool command = program < static_cast<std::ptrdiff_t>(flat.size());
    if (command && is_training(flat)) {
      return {ShellWords(flat.begin(), flat.begin() + program),
              ShellWords(flat.begin() + program + 1, flat.end())};
    }
    if (std::ranges::any_of(flat, [](const ShellWord& word) { return is_flag(word.text); }))
      flags.insert(flags.end(), flat.begin(), flat.end());
  }
  if (is_training(flags)) return {{}, flags};
  return any.arguments.empty() ? all : any;
}

// What a script calls its tokenizer in a variable; empty: nothing that it states.
std::string tokenizer_of(const ShellScript& script) {
  for (const char* name : {"TOKENIZER_MODEL", "HF_MODEL_CKPT", "TOKENIZER_PATH", "TOKENIZER"}) {
    const auto found = script.variables.find(name);
    if (found == script.variables.end() || found->second.empty()) continue;
    const ShellWord& word = found->second.front();
    if (word.unknown.empty() && !word.text.empty()) return word.text;
  }
  return "";
}

// A word of which nothing is known may be arguments of its own: it is no value of a flag that has
// one, but for lists of data and of other programs.
bool stands_alone(const ShellWord& word, const std::vector<MegatronArgument>& before) {
  if (word.unknown.empty() || !word.text.empty()) return false;
  if (before.empty()) return true;
  const auto& [flag, values, mark, unknown] = before.back();
  const bool list = values.size() > 1 && !is_megatron_flag(flag);
  return !values.empty() && !list && !flag.ends_with("data-path");
}

std::vector<MegatronArgument> arguments_of(const ShellWords& words) {
  std::vector<MegatronArgument> list;
  for (const auto& word : words) {
    if (is_flag(word.text)) {
      const std::size_t equals = word.text.find('=');
      list.push_back({word.text.substr(0, equals), {}, word.mark, word.unknown});
      if (equals != std::string::npos) list.back().values.push_back(word.text.substr(equals + 1));
    } else if (stands_alone(word, list)) {
      list.push_back({word.unknown, {}, word.mark, word.unknown});
    } else if (!list.empty()) {
      list.back().values.push_back(word.text);
      if (!word.unknown.empty()) list.back().unknown = word.unknown;
    }
  }
  return list;
}

// Of a list as text, "[attn mlp]", its words; any other text is one.
std::vector<std::string> words_of(const std::string& text) {
  if (!text.starts_with('[') || !text.ends_with(']')) return {text};
  std::istringstream words(text.substr(1, text.size() - 2));
  std::vector<std::string> all;
  for (std::string word; words >> word;) all.push_back(word);
  return all;
}

std::vector<std::string> known_stacks() {
  return costmodel::config_names(costmodel::config_path({}), "stacks");
}

// The first stack of each title.
std::map<std::string, std::string> stacks_by_title() {
  std::map<std::string, std::string> names;
  const costmodel::ConfigPath path = costmodel::config_path({});
  for (const std::string& name : known_stacks()) {
    const auto file = costmodel::resolve_config(path, "stacks", costmodel::scalar_value(name));
    if (const costmodel::Value* title = file.value.find("title")) names.emplace(title->text, name);
  }
  return names;
}

// Of a stack that is written as a map it has the title of its base.
std::string name_of(const costmodel::StackSpec& stack) {
  if (!stack.name.empty()) return stack.name;
  static const auto names = stacks_by_title();  // a file each
  const auto found = names.find(stack.title);
  return found == names.end() ? "" : found->second;
}

// MODEL_ARGS of Megatron-LM's functional tests: a map of flags, where `true` is the flag alone and
// the last of several counts (tests/functional_tests/shell_test_utils/_run_training.sh).
MegatronArguments arguments_in_yaml(const std::string& text, const std::string& file) {
  MegatronArguments out;
  const costmodel::Value root = costmodel::parse_yaml(text, file, costmodel::RepeatedKeys::kept);
  const costmodel::Value* all = root.find("MODEL_ARGS");
  if (all == nullptr || !all->is_map()) return out;
  const costmodel::Value* mode = root.find("MODE");
  if (mode != nullptr && mode->text == "inference")
    refuse_serving({"MODE: inference", mode->mark, ""});
  for (const auto& entry : all->entries) {
    const costmodel::Value& value = entry.value;
    MegatronArgument argument{entry.key, {}, value.mark, ""};
    if (value.text == "false") continue;
    if (!value.items.empty()) {
      for (const auto& item : value.items) argument.values.push_back(item.text);
    } else if (value.text != "true") {
      argument.values = words_of(value.text);
    }
    out.list.push_back(std::move(argument));
  }
  return out;
}

// What a script sources: a file of its own folder or below, by its path or, where that is of
// another working directory, by its name.
std::optional<std::string> sourced_by(const std::string& script, const std::string& name) {
  const std::string folder = costmodel::folder_of(script);
  if (name.empty() || !costmodel::path_exists(script)) return {};
  for (const auto& part : {name, costmodel::file_name_of(name)}) {
    const std::string file = costmodel::joined_path(folder, part);
    if (costmodel::is_regular_file(file) &&
        costmodel::lies_in(file, costmodel::reach_of({script, 1, 0})))
      return costmodel::read_file(file);
  }
  return {};
}

}  // namespace

bool holds_megatron_flags(const std::string& text) {
  return text.find("--num-layers") != std::string::npos ||
         text.find("--hybrid-layer-pattern") != std::string::npos ||
         text.find("--hybrid-override-pattern") != std::string::npos ||
         text.find("--tensor-model-parallel-size") != std::string::npos;
}

void note_stack(const costmodel::StackSpec& stack, std::string_view own,
                std::vector<std::string>& notes) {
  const std::string name = name_of(stack);
  if (!name.empty() && name != own) {
    notes.push_back(fmt::format("{}{} (training.stack), and is read so again", priced_upon, name));
  }
}

std::string noted_stack(const std::string& text, std::string_view own) {
  const std::string begin = fmt::format("# Note: {}", priced_upon);
  const std::size_t at = text.find(begin);
  if (at == std::string::npos) return std::string(own);
  std::string name = text.substr(at + begin.size());
  name.resize(std::min(name.size(), name.find_first_of(" \n")));
  const auto known = known_stacks();
  return std::ranges::find(known, name) == known.end() ? std::string(own) : name;
}

MegatronArguments read_megatron_script(const std::string& text, const std::string& file) {
  if (has_line(text, "MODEL_ARGS:")) return arguments_in_yaml(text, file);
  const ShellScript script =
      read_shell(text, file, [&](const std::string& name) { return sourced_by(file, name); });
  const Command command = command_of(script);
  MegatronArguments out;
  out.list = arguments_of(command.arguments);
  const Launched launched = launched_by(script, command.launcher);
  out.tokenizer = tokenizer_of(script);
  out.stack = noted_stack(text, megatron_stack);
  out.world_size = launched.world_size;
  out.per_node = launched.per_node;
  out.nodes = launched.nodes;
  if (launched.by_variable) out.notes.emplace_back(world_size_note);
  if (!script.call.empty()) {
    out.notes.push_back(fmt::format("the script's arguments are those of its own comment: {}",
                                    costmodel::shortened(script.call)));
  }
  if (script.branches) {
    out.notes.emplace_back(
        "the script has conditions or loops: every branch is read, and the last value counts");
  }
  return out;
}

}  // namespace planner
