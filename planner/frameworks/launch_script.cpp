#include "planner/frameworks/launch_script.hpp"

#include <fmt/format.h>

#include <sstream>

#include "costmodel/base/escape.hpp"
#include "planner/frameworks/torchrun_script.hpp"

namespace planner {

using namespace costmodel;

namespace {

// "--flag a b" as words of bash: argparse takes each value of a list as one.
std::string line_of(const std::string& argument) {
  std::string line = " ";
  std::istringstream words(argument);
  for (std::string word; words >> word;) line += " " + shell_word(word);
  return line + "\n";
}

// Since core 0.18 NullTokenizer adds no token of its own to --vocab-size
// (megatron/core/tokenizers/text/libraries/null_tokenizer.py).
std::string data_arguments(const Scenario& scenario, std::int64_t added) {
  std::string text = "\n# Made-up data, to measure time and memory; replace it to train.\ndata=(\n";
  text += "  --mock-data\n  --tokenizer-type NullTokenizer\n";
  text += fmt::format("  --vocab-size {}\n", scenario.model.vocab - added);
  return text + "  --split 99,1,0\n)\n";
}

}  // namespace

std::string launch_script(const MegatronExport& exported, const Scenario& scenario,
                          const ParallelPlan& plan) {
  std::string text = script_head({.framework = exported.framework,
                                  .where = "in a checkout of Megatron-LM",
                                  .notes = exported.notes,
                                  .environment = exported.environment},
                                 scenario, plan);
  text += "\n# The plan.\nplan=(\n";
  for (const auto& argument : exported.arguments) text += line_of(argument);
  text += ")\n" + data_arguments(scenario, exported.null_tokenizer_adds);
  text += "\n# A short run that prints time and throughput of each iteration.\nrun=(\n";
  text += "  --train-iters 20\n  --lr 1.0e-4\n  --eval-interval 1000\n  --eval-iters 1\n";
  text += "  --log-interval 1\n  --log-throughput\n)\n\n";
  text += torchrun_command(scenario, plan);
  return text +
         (scenario.model.layer_pattern.empty() ? "  pretrain_gpt.py" : "  pretrain_hybrid.py") +
         " \"${plan[@]}\" \"${data[@]}\" \"${run[@]}\" \"$@\"\n";
}

}  // namespace planner
