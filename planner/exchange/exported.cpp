#include "planner/exchange/exported.hpp"

#include <fmt/format.h>

#include <cstdint>

#include "costmodel/plan/stage_plan.hpp"

namespace planner {

using namespace costmodel;

void Refusals::refuse(bool wrong, std::string_view key, const std::string& reason,
                      std::string remedy) {
  if (!wrong) return;
  found.push_back({std::string(key), fmt::format("{}: {}", framework_, reason), std::move(remedy)});
}

void refuse_unlike(const Scenario& scenario, const ParallelPlan& plan, Refusals& refusals) {
  refusals.refuse(by_stage(plan, scenario.cluster), "stages", "stages and devices are all alike",
                  "leave plan.stages out, and choose a cluster of one kind of device");
  refusals.refuse(plan.pipelines() > 1, "replicas", "replicas take equal shares of the batch",
                  "leave plan.replicas out");
  refusals.refuse(plan.rank_order != default_rank_order, "rank_order",
                  "tensor ranks are innermost and pipeline ranks outermost",
                  "leave rank_order out");
  const std::int64_t node = scenario.cluster.devices_per_node, world = plan.devices();
  refusals.refuse(world > node && world % node != 0, "dp",
                  fmt::format("{} devices do not fill nodes of {}: the launcher starts as many "
                              "processes on each",
                              world, node),
                  "use whole nodes");
}

void refuse_first(const std::vector<Violation>& broken, const Scenario& scenario) {
  if (broken.empty()) return;
  Mark mark = scenario.plan.mark_of(broken.front().key);
  if (mark.file.empty() || broken.front().key == "model") mark = {scenario.file, 0, 0};
  throw ConfigError(mark, broken.front().reason, broken.front().remedy);
}

std::string nested_yaml(const NamedSettings& settings) {
  std::string text;
  std::vector<std::string> above;
  for (const auto& [name, value] : settings) {
    std::vector<std::string> parts{""};
    for (const char c : name) {
      if (c == '.') parts.emplace_back();
      if (c != '.') parts.back() += c;
    }
    std::size_t depth = 0;
    while (depth + 1 < parts.size() && depth < above.size() && parts[depth] == above[depth])
      ++depth;
    above.assign(parts.begin(), parts.end() - 1);
    for (; depth < above.size(); ++depth)
      text += std::string(2 * depth, ' ') + parts[depth] + ":\n";
    text += fmt::format("{}{}: {}\n", std::string(2 * depth, ' '), parts.back(), value);
  }
  return text;
}

}  // namespace planner
