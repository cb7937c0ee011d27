#include "planner/report/json_ladder.hpp"

#include <nlohmann/json.hpp>

#include "costmodel/base/json_text.hpp"
#include "planner/report/json_plan.hpp"
#include "planner/report/ladder_report.hpp"

namespace planner {

using namespace costmodel;

using Json = nlohmann::ordered_json;

namespace {

Json limit(double value) { return value > 0 ? Json(value) : Json(); }

Json devices_json(const DeviceLadder& ladder, const RunLimits& limits, const Scenario& s) {
  Json tried = Json::array();
  for (const Rung& rung : ladder.rungs) {
    Json row{{"devices", rung.devices}, {"keeps_limits", rung.keeps}, {"iteration_s", nullptr}};
    if (rung.best) {
      row["iteration_s"] = rung.best->iteration.value;
      row["training_run"] = training_run_json(rung.run, s.training.run_tokens);
      row["plan"] = printed_plan(*rung.best);
    }
    tried.push_back(std::move(row));
  }
  return {{"deadline_days", limit(limits.days)},
          {"budget_usd", limit(limits.usd)},
          {"chosen", ladder.chosen ? Json(ladder.rungs[*ladder.chosen].devices) : Json()},
          {"verdict", ladder_verdict(ladder, limits, s)},
          {"tried", tried}};
}

}  // namespace

std::string with_ladder(const std::string& plan_json, const DeviceLadder& ladder,
                        const RunLimits& limits, const Scenario& s) {
  Json json = Json::parse(plan_json);
  json["devices"] = devices_json(ladder, limits, s);
  return json_text(json);
}

std::string ladder_json(const DeviceLadder& ladder, const RunLimits& limits, const Scenario& s) {
  return json_text(Json{{"scenario", s.name},
                        {"plans", Json::array()},
                        {"devices", devices_json(ladder, limits, s)}});
}

}  // namespace planner
