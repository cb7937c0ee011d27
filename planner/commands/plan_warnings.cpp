#include "planner/commands/plan_warnings.hpp"

#include <fmt/format.h>

#include "costmodel/base/escape.hpp"
#include "costmodel/base/unit_text.hpp"

namespace planner {

using namespace costmodel;

std::vector<std::string> memory_warnings(const Estimate& estimate) {
  if (estimate.fits()) return {};
  return {fmt::format("warning: the plan does not fit in memory: stage {} needs {} of {}",
                      estimate.fullest, format_bytes(estimate.peak),
                      format_bytes(estimate.capacity))};
}

std::vector<std::string> plan_warnings(const Options& options, const Scenario& scenario,
                                       const Estimate& estimate) {
  std::vector<std::string> lines = memory_warnings(estimate);
  if (scenario.plan.written.empty()) {
    const std::string to = options.to.empty() ? "" : " --to " + shell_word(options.to);
    lines.push_back(fmt::format(
        "note: the scenario has no plan: this is the default one. For the best: shardplan plan {} "
        "--format yaml --out best.yaml, then shardplan {} best.yaml{}",
        scenario_text(options), options.command, to));
  }
  return lines;
}

std::vector<std::string> note_lines(const std::vector<std::string>& notes) {
  std::vector<std::string> lines;
  for (const auto& note : notes) lines.push_back("note: " + note);
  return lines;
}

}  // namespace planner
