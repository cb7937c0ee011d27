#include "planner/frameworks/torchrun_script.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "costmodel/base/escape.hpp"
#include "costmodel/plan/plan_text.hpp"

namespace planner {

using namespace costmodel;

namespace {

std::int64_t devices_a_node(const Scenario& scenario, const ParallelPlan& plan) {
  return std::min(scenario.cluster.devices_per_node, plan.devices());
}

}  // namespace

std::string shell_comment(const std::string& text) {
  return fmt::format("# {}\n", printable(text));
}

std::string script_head(const ScriptHead& head, const Scenario& scenario,
                        const ParallelPlan& plan) {
  const std::int64_t nodes = plan.devices() / devices_a_node(scenario, plan);
  std::string text = "#!/usr/bin/env bash\n";
  text += shell_comment(fmt::format(
      "{} for {}, as shardplan planned it:", scenario.name.empty() ? "A plan" : scenario.name,
      head.framework));
  text += shell_comment(costmodel::to_string(plan));
  text += shell_comment(
      "Run it " + head.where +
      (nodes > 1 ? fmt::format(" on each of the {} nodes,", nodes) : std::string(".")));
  if (nodes > 1) text += rendezvous_comment;
  for (const auto& note : head.notes) text += shell_comment("Note: " + note);
  text += "set -euo pipefail\n\n";
  for (const auto& variable : head.environment) text += fmt::format("export {}\n", variable);
  return text;
}

std::string torchrun_command(const Scenario& scenario, const ParallelPlan& plan) {
  const std::int64_t each = devices_a_node(scenario, plan), nodes = plan.devices() / each;
  std::string text = fmt::format("torchrun --nproc-per-node {} --nnodes {} \\\n", each, nodes);
  if (nodes > 1) {
    text += "  --node-rank \"${NODE_RANK:-${SLURM_NODEID:?or NODE_RANK must be set}}\" \\\n";
    text += "  --master-addr \"${MASTER_ADDR:?must name the first node}\" \\\n";
    text += "  --master-port \"${MASTER_PORT:-29500}\" \\\n";
  }
  return text;
}

}  // namespace planner
