// The JSON of a comparison.
#include "planner/report/json_report.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "costmodel/estimate/plan_estimate.hpp"
#include "tests/costmodel/support/fixtures.hpp"

namespace json_comparison_test {

using namespace planner;

TEST_CASE("an entry a scenario, its differences, and how it compares with the first") {
  const auto path = fixtures::configs();
  const costmodel::Scenario scenario =
      load_scenario(costmodel::scenario_file("tiny-gpt-cpu", path), path, {});
  Compared first{
      "a",
      {},
      scenario,
      estimate_of(scenario.model, scenario.cluster, scenario.training, resolve_plan(scenario))};
  first.input.set("sequence", costmodel::scalar_value("128"));
  Compared other = first;
  other.name = "b";
  other.input.set("rounds", costmodel::scalar_value("2"));
  const auto json = nlohmann::json::parse(comparison_json({first, other}));
  REQUIRE(json["scenarios"].size() == 2);
  CHECK(json["scenarios"][1]["name"] == "b");
  CHECK(json["scenarios"][0]["time"]["iteration_s"] ==
        doctest::Approx(first.estimate.iteration.value));
  REQUIRE(json["differs"].size() == 1);
  CHECK(json["differs"][0]["key"] == "rounds");
  CHECK(json["differs"][0]["values"][0].is_null());
  CHECK(json["differs"][0]["values"][1] == "2");
  REQUIRE(json["against_first"].size() == 1);
  CHECK(json["against_first"][0]["speedup"] == 1);
  CHECK(json["against_first"][0]["probability_faster"].is_null());
}

}  // namespace json_comparison_test
