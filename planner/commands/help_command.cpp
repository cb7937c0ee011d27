#include "planner/commands/help_command.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "costmodel/base/error.hpp"
#include "costmodel/base/escape.hpp"
#include "costmodel/cli/help.hpp"
#include "planner/commands/completions.hpp"

namespace planner {

using namespace costmodel;

namespace {

std::string scenario_help(const Program&) {
  return "A scenario is a file of YAML: what is trained, on what, and how.\n\n"
         "  model: llama-3-8b                        # a name, a file (also config.json), or a "
         "map\n"
         "  cluster: {base: dgx-h100, devices: 64}   # a name, a file, or a map\n"
         "  training: {global_batch: 512, sequence: 8192, precision: bf16}\n"
         "  plan: {tp: 2, micro_batch: 1}            # what is fixed; `plan` searches the rest\n\n"
         "Where a scenario may stand, a model may too, with --gpus, --cluster, --batch, "
         "--sequence,\n"
         "--precision and --framework: shardplan plan llama-3-8b --gpus 64xh100. What is not "
         "given\n"
         "is assumed, and the report says what. These flags change a scenario's values as well, "
         "and\n"
         "--set KEY.PATH=VALUE any of them. A lone - is a scenario on standard input.\n"
         "`shardplan init my.yaml --gpus 64xh100` writes a scenario to start from.\n";
}

std::string keys_help(const Program&) {
  return "The keys of a scenario are model, cluster, training, plan and search; with workload:\n"
         "inference, serving in place of training. `shardplan list keys` says what each means and\n"
         "what it may be, with those of the files of models, clusters, devices, stacks and\n"
         "engines; further words choose: shardplan list keys plan recompute.\n";
}

std::string formats_help(const Program& program) {
  std::string text =
      "What a command can print, --format FORMAT (-f); text where none is asked:\n\n";
  for (const auto& command : program.commands) {
    if (!command.formats.empty())
      text += fmt::format("  {:<12} {}\n", command.name, command.formats);
  }
  return text + "\n--out FILE (-o) writes it to a file, whole or not at all.\n";
}

std::string status_help(const Program& program) { return std::string(program.ending); }

std::string numbers_help(const Program&) {
  return "Lengths in tokens (sequence, decoder_sequence, max_positions, sample_tokens, prompts):\n"
         "  128k is 131,072 and 1M 1,048,576, as the field means them of sequences.\n"
         "Tokens of a run and money: 300B, 15T, 2M are thousands of thousands.\n"
         "Sizes, rates and times have units: 80 GiB, 25 GB/s, 312 TFLOP/s, 2.5 us, 30d; without\n"
         "one they are bytes, bytes or operations a second, and seconds.\n";
}

std::string manual(const Program& program) { return manual_page(program); }

struct Topic {
  std::string_view name, words;  // other words for it, apart by blanks
  std::string (*text)(const Program& program);
};

constexpr std::array topics{Topic{"scenario", "scenarios words", scenario_help},
                            Topic{"keys", "key", keys_help},
                            Topic{"formats", "format", formats_help},
                            Topic{"numbers", "units number", numbers_help},
                            Topic{"exit-status", "exit status", status_help},
                            Topic{"man", "manual", manual}};

}  // namespace

std::string version_text() { return "shardplan " SHARDPLAN_VERSION "\n"; }

std::string help_topics() {
  std::vector<std::string_view> names;
  for (const Topic& topic : topics) names.push_back(topic.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string opening() {
  return "shardplan: how to train and serve transformers on many accelerators. To begin:\n"
         "  shardplan plan llama-3-70b --gpus 64xh100     the best plans of a model on devices\n"
         "  shardplan init my.yaml --gpus 64xh100         a scenario to start from, with comments\n"
         "  shardplan plan my.yaml                        the best plans of a scenario\n"
         "  shardplan evaluate my.yaml --set plan.tp=8    one plan: time, memory, communication\n"
         "  shardplan compare a.yaml b.yaml               which is faster, and why\n"
         "  shardplan export my.yaml --to megatron        the plan as a framework's own launch\n"
         "  shardplan explain-job train.sh train.log      why a job is slow\n"
         "  shardplan list models llama                   models, clusters, devices, keys, ...\n"
         "  shardplan help [TOPIC]                        all commands, one of them, or a topic\n";
}

std::string help_on(const Program& program, const std::vector<std::string>& words) {
  if (words.empty()) {
    return fmt::format("{}topics of `shardplan help`: {}\n", help_of(program, nullptr),
                       help_topics());
  }
  const std::string asked = fmt::format("{}", fmt::join(words, "-"));
  const auto command = std::ranges::find(program.commands, asked, &Command::name);
  if (command != program.commands.end()) return help_of(program, &*command);
  for (const Topic& topic : topics) {
    const auto others = split_words(topic.words);
    if (topic.name == asked || std::ranges::count(others, asked) > 0) return topic.text(program);
  }
  std::vector<std::string> known;
  for (const auto& each : program.commands) known.emplace_back(each.name);
  for (const Topic& topic : topics) known.emplace_back(topic.name);
  throw ConfigError({}, fmt::format("shardplan: no help on {}", quote(asked)),
                    costmodel::known_names(asked, known, known.size()));
}

}  // namespace planner
