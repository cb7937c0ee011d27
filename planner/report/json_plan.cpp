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

Json evaluation_json(const costmodel::Estimate& e, const costmodel::Scenario& s) {
  Json json{{"scenario", s.name},
            {"plan", told_plan(e)},
            {"time", costmodel::time_json(e)},
            {"bubble_fraction", e.bubble_fraction},
            {"throughput", costmodel::throughput_json(e, s.cluster)},
            {"memory", costmodel::memory_json(e)},
            {"communication", costmodel::communication_json(e.traffic, e.rank_traffic)},
            {"parameters", e.parameters},
            {"notes", e.notes}};
  if (s.model.experts > 0) json["active_parameters"] = e.active_parameters;
  return json;
}

}  // namespace planner
