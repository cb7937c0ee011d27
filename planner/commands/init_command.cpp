#include "planner/commands/init_command.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>

#include "costmodel/base/console.hpp"
#include "costmodel/base/error.hpp"
#include "costmodel/base/escape.hpp"
#include "costmodel/base/path.hpp"
#include "costmodel/config/yaml.hpp"
#include "planner/commands/listing.hpp"
#include "planner/commands/scenario_words.hpp"

namespace planner {

using namespace costmodel;

namespace {

constexpr const char* usual_model = "llama-3-8b";
constexpr const char* usual_gpus = "8xh100";

// A line typed on the terminal; `usual` where it is empty.
std::string asked(const std::string& question, const std::string& usual) {
  const std::string line = read_answer(fmt::format("{} [{}]: ", question, usual));
  return line.empty() ? usual : line;
}

bool says_gpus(const std::string& word) {
  const std::size_t x = word.find_first_not_of("0123456789,");
  return x != std::string::npos && x > 0 && std::string("xX*").find(word[x]) != std::string::npos;
}

// The words: operands are a model and devices. The file is options.out by then.
Options settled_words(const Options& given) {
  Options options = given;
  for (const auto& word : given.operands) {
    std::string& field = says_gpus(word) ? options.gpus : options.model;
    if (!field.empty()) {
      throw ConfigError(
          {}, fmt::format("shardplan: init is given {} beside {}", quote(word), quote(field)),
          "name one model and one kind of devices: init llama-3-8b 64xh100");
    }
    field = word;
  }
  const bool nothing = options.model.empty() && options.gpus.empty() && options.cluster.empty();
  if (nothing && isatty(STDIN_FILENO) != 0 && isatty(STDERR_FILENO) != 0) {
    options.model = asked("model, a name of `shardplan list models` or a file", usual_model);
    options.gpus = asked("devices, as 64xh100", usual_gpus);
  }
  if (options.model.empty()) options.model = usual_model;
  if (options.gpus.empty() && options.cluster.empty()) options.gpus = usual_gpus;
  return options;
}

// What the keys mean, by their dotted paths.
std::map<std::string, std::string> meanings(const ConfigPath& path) {
  std::map<std::string, std::string> all;
  for (const auto& row : listing("keys", {}, path).table.rows) all.emplace(row[0], row[1]);
  all["model"] = "a name (`shardplan list models`), a file, or a map";
  all["cluster.base"] = "a name (`shardplan list clusters`), or a file";
  all["plan"] = "every key is searched; to fix some: plan: {tp: 2}";
  return all;
}

// Each line with what its key means. The tree is written two blanks a level.
std::string commented(const std::string& yaml, const std::map<std::string, std::string>& meaning) {
  constexpr std::size_t column = 30;  // where comments begin
  std::string text, above;
  for (std::size_t from = 0; from < yaml.size();) {
    const std::size_t end = std::min(yaml.find('\n', from), yaml.size());
    const std::string line = yaml.substr(from, end - from);
    from = end + 1;
    const std::string key = line.substr(0, line.find(':'));
    const bool inner = key.starts_with("  ");
    if (!inner) above = key;
    const auto found = meaning.find(inner ? above + "." + key.substr(2) : key);
    text += found == meaning.end() ? line + "\n"
                                   : fmt::format("{:<{}}# {}\n", line, column, found->second);
  }
  return text;
}

// Further keys, as comments.
std::string further(const std::map<std::string, std::string>& meaning) {
  constexpr std::array keys{"training.optimizer",
                            "training.tokens",
                            "plan.tp",
                            "plan.pp",
                            "plan.cp",
                            "plan.ep",
                            "plan.micro_batch",
                            "plan.recompute",
                            "plan.zero",
                            "plan.schedule",
                            "search.memory_margin"};
  std::string text = "\n# Further keys, of those that `shardplan list keys` explains:\n";
  for (const char* key : keys) {
    if (const auto found = meaning.find(key); found != meaning.end())
      text += fmt::format("#   {:<21} # {}\n", key, found->second);
  }
  return text;
}

}  // namespace

CommandResult init_command(const Session& session) {
  const std::string& file = session.options.out;
  if (!file.empty() && path_exists(file)) {
    throw ConfigError({file, 0, 0}, "is there already, and init overwrites nothing",
                      "name another file; a model's file is given as --model FILE");
  }
  const Options options = settled_words(session.options);
  std::vector<std::string> assignments = word_assignments(options, session.path);
  assignments.insert(assignments.end(), options.assignments.begin(), options.assignments.end());
  Value root = scenario_of_model(options.model, assignments, session.path);
  root.erase("assumed");
  const std::string name = file.empty() ? "FILE" : shell_word(file);
  const auto meaning = meanings(session.path);
  CommandResult result;
  result.text = fmt::format(
      "# A scenario: what is trained, on what, and how (`shardplan help scenario`).\n"
      "#   shardplan plan {0}        the best plans\n"
      "#   shardplan evaluate {0}    time, memory and communication of its plan\n\n{1}{2}",
      name, commented(to_yaml(root), meaning), further(meaning));
  if (!file.empty())
    result.warnings.push_back(fmt::format("{0} is written: shardplan plan {0}", name));
  return result;
}

}  // namespace planner
