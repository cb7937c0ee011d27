#include "planner/frameworks/launch_script.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "costmodel/base/escape.hpp"
#include "costmodel/plan/plan_text.hpp"

namespace planner {

namespace {

// "--flag value" as two words of bash.
std::string line_of(const std::string& argument) {
  const std::size_t space = argument.find(' ');
  if (space == std::string::npos) return fmt::format("  {}\n", argument);
  return fmt::format("  {} {}\n", argument.substr(0, space),
                     costmodel::shell_word(argument.substr(space + 1)));
}

// A comment stays on its line, for any name.
std::string comment(const std::string& text) {
  return fmt::format("# {}\n", costmodel::printable(text));
}

std::string header(const MegatronExport& exported, const costmodel::Scenario& scenario,
                   const costmodel::ParallelPlan& plan, std::int64_t nodes) {
  std::string text = "#!/usr/bin/env bash\n";
  text += comment(fmt::format("{} for Megatron-LM core 0.20, as shardplan planned it:",
                              scenario.name.empty() ? "A plan" : scenario.name));
  text += comment(costmodel::to_string(plan));
  text += comment("Run it in a checkout of Megatron-LM" +
                  (nodes > 1 ? fmt::format(" on each of the {} nodes,", nodes) : std::string(".")));
  if (nodes > 1) {
    text += comment(
        "with MASTER_ADDR naming the first and NODE_RANK (or SLURM_NODEID) counting from 0.");
  }
  for (const auto& note : exported.notes) text += comment("Note: " + note);
  text += "set -euo pipefail\n\n";
  for (const auto& variable : exported.environment) text += fmt::format("export {}\n", variable);
  return text;
}

// NullTokenizer counts an end-of-document token on top of --vocab-size.
std::string data_arguments(const costmodel::Scenario& scenario) {
  std::string text = "\n# Made-up data, to measure time and memory; replace it to train.\ndata=(\n";
  text += "  --mock-data\n  --tokenizer-type NullTokenizer\n";
  text += fmt::format("  --vocab-size {}\n", std::max<std::int64_t>(1, scenario.model.vocab - 1));
  return text + "  --split 99,1,0\n)\n";
}

}  // namespace

std::string launch_script(const MegatronExport& exported, const costmodel::Scenario& scenario,
                          const costmodel::ParallelPlan& plan) {
  const std::int64_t per_node = std::min(scenario.cluster.devices_per_node, plan.devices());
  const std::int64_t nodes = plan.devices() / per_node;
  std::string text = header(exported, scenario, plan, nodes);
  text += "\n# The plan.\nplan=(\n";
  for (const auto& argument : exported.arguments) text += line_of(argument);
  text += ")\n" + data_arguments(scenario);
  text += "\n# A short run that prints time and throughput of each iteration.\nrun=(\n";
  text += "  --train-iters 20\n  --lr 1.0e-4\n  --eval-interval 1000\n  --eval-iters 1\n";
  text += "  --log-interval 1\n  --log-throughput\n)\n\n";
  text += fmt::format("torchrun --nproc-per-node {} --nnodes {} \\\n", per_node, nodes);
  if (nodes > 1) {
    text += "  --node-rank \"${NODE_RANK:-${SLURM_NODEID:?or NODE_RANK must be set}}\" \\\n";
    text += "  --master-addr \"${MASTER_ADDR:?must name the first node}\" \\\n";
    text += "  --master-port \"${MASTER_PORT:-29500}\" \\\n";
  }
  return text + "  pretrain_gpt.py \"${plan[@]}\" \"${data[@]}\" \"${run[@]}\" \"$@\"\n";
}

}  // namespace planner
