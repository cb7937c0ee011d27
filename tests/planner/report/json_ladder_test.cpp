#include "planner/report/json_report.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "tests/planner/support/device_runs.hpp"

TEST_CASE("The JSON of a ladder holds its limits, what was tried, and what else plan printed") {
  const auto s = device_runs::priced();
  const planner::RunLimits limits{.days = 60, .usd = 0};
  const auto ladder = planner::device_ladder(s, limits);
  REQUIRE(ladder.chosen);
  const auto json =
      nlohmann::json::parse(with_ladder(R"({"best": 0, "plans": [1]})", ladder, limits, s));
  CHECK(json["best"] == 0);
  CHECK(json["plans"].size() == 1);
  const auto& devices = json["devices"];
  CHECK(devices["deadline_days"] == 60);
  CHECK(devices["budget_usd"].is_null());
  CHECK(devices["chosen"] == ladder.rungs[*ladder.chosen].devices);
  REQUIRE(devices["tried"].size() == ladder.rungs.size());
  for (std::size_t i = 0; i < ladder.rungs.size(); ++i) {
    const auto& row = devices["tried"][i];
    CHECK(row["devices"] == ladder.rungs[i].devices);
    CHECK(row["iteration_s"].is_null() == !ladder.rungs[i].best);
    if (ladder.rungs[i].best)
      CHECK(row["training_run"]["usd"] == ladder.rungs[i].run.usd.value_or(0));
  }
  const auto none = nlohmann::json::parse(
      ladder_json(planner::device_ladder(s, {.days = 0.5, .usd = 0}), {.days = 0.5, .usd = 0}, s));
  CHECK(none["plans"].empty());
  CHECK(none["devices"]["chosen"].is_null());
}
