#include "planner/report/json_plan.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>

#include "costmodel/estimate/json_estimate.hpp"

namespace planner {

using Json = nlohmann::ordered_json;

Json told_plan(const costmodel::Estimate& e) {
  Json plan = costmodel::plan_json(e);
  if (!plan.contains("stages")) return plan;
  const Json& stages = plan["stages"];
  for (const char* key : {"tp", "cp", "cp_comm", "ep", "etp", "recompute", "zero"}) {
    const Json& first = stages.front()[key];
    const bool common = std::all_of(stages.begin(), stages.end(),
                                    [&](const Json& stage) { return stage[key] == first; });
    plan[key] = common ? first : Json();
  }
  return plan;
}

}  // namespace planner
