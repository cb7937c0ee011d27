#include "planner/accuracy/json_serving_runs.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

using namespace planner;

TEST_CASE("A run has its figures, and the reason why it is not predicted") {
  ServingRun run;
  run.source = "a";
  run.fault = "does not fit";
  run.figures = {{ServingMetric::throughput, 120, 100}, {ServingMetric::ttft, 0.5, 0}};
  const auto parsed = nlohmann::json::parse(serving_runs_json({run}));
  REQUIRE(parsed.size() == 1);
  CHECK(parsed[0]["fault"] == "does not fit");
  CHECK(parsed[0]["figures"][0]["metric"] == "output tokens/s");
  CHECK(parsed[0]["figures"][0]["predicted"] == 100);
  CHECK(parsed[0]["figures"][1]["predicted"].is_null());
}
