// Logs of jobs that take a known factor of what is predicted for them, in Megatron-LM's words, and
// `shardplan calibrate --from-log` performed on them within the test.
#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

#include "costmodel/estimate/plan_estimate.hpp"
#include "planner/commands/commands.hpp"
#include "planner/commands/options.hpp"
#include "tests/costmodel/support/scenarios.hpp"
#include "tests/run_program.hpp"

namespace own_logs {

inline std::string job(int tp, int devices, const std::string& more = "",
                       const std::string& stack = "megatron-core-2025") {
  return fmt::format(
      "model: llama-3-8b\ncluster: {{base: dgx-h100, devices: {}{}}}\ntraining: {{global_batch: "
      "128, sequence: 8192, precision: bf16, stack: {}}}\nplan: {{tp: {}, pp: 2, micro_batch: 1, "
      "zero: 1}}\n",
      devices, more, stack, tp);
}

inline costmodel::Estimate predicted(const std::string& yaml) {
  const costmodel::Scenario s = scenarios::read(yaml);
  return estimate_of(s.model, s.cluster, s.training, resolve_plan(s));
}

inline std::string log_of(double seconds, int iterations = 40) {
  std::string text;
  for (int i = 1; i <= iterations; ++i) {
    const double warm = i == 1 ? 3 : 1, wobble = 1 + 0.002 * (i % 5 - 2);
    text += fmt::format(
        " iteration {:8}/     500 | consumed samples: {} | elapsed time per iteration (ms): {:.1f} "
        "| global batch size:   128 | lm loss: 7.1E+00 |\n",
        i, 128 * i, 1000 * seconds * warm * wobble);
  }
  return text;
}

// Writes NAME.yaml and NAME.log, a run that takes `factor` of its prediction, and returns the two
// as
// --from-log takes them.
inline std::string write_run(const program::Scratch& scratch, const std::string& name,
                             const std::string& yaml, double factor) {
  scratch.write(name + ".yaml", yaml);
  scratch.write(name + ".log", log_of(factor * predicted(yaml).iteration.value));
  const std::string at = (scratch.path() / name).string();
  return at + ".yaml:" + at + ".log";
}

inline planner::CommandResult perform(std::vector<std::string> words) {
  words.insert(words.begin(), "shardplan");
  std::vector<const char*> arguments;
  for (const auto& word : words) arguments.push_back(word.c_str());
  return run_command(
      planner::parse_command_line(planner::shardplan(), static_cast<int>(arguments.size()),
                                  arguments.data()),
      {});
}

inline planner::CommandResult from_logs(const std::vector<std::string>& runs,
                                        const std::vector<std::string>& more = {}) {
  std::vector<std::string> words{"calibrate", "--from-log"};
  words.insert(words.end(), runs.begin(), runs.end());
  words.insert(words.end(), more.begin(), more.end());
  return perform(words);
}

}  // namespace own_logs
