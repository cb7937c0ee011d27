// What launch scripts of torchrun share: the head that says what they are, and the command.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "costmodel/plan/parallel_plan.hpp"
#include "costmodel/scenario/scenario.hpp"

namespace planner {

// A comment stays on its line, for any text.
std::string shell_comment(const std::string& text);

struct ScriptHead {
  std::string framework;  // "Megatron-LM core 0.20"
  std::string where;      // "in a checkout of Megatron-LM"
  std::vector<std::string> notes;
  std::vector<std::string> environment;  // "NAME=value"
};

// Says what a node must be told, where there are several.
inline constexpr std::string_view rendezvous_comment =
    "# with MASTER_ADDR naming the first and NODE_RANK (or SLURM_NODEID) counting from 0.\n";

// From the first line to the exported environment.
std::string script_head(const ScriptHead& head, const costmodel::Scenario& scenario,
                        const costmodel::ParallelPlan& plan);

// "torchrun --nproc-per-node 8 ..." up to the program, which the caller adds on a line of its own.
std::string torchrun_command(const costmodel::Scenario& scenario,
                             const costmodel::ParallelPlan& plan);

}  // namespace planner
