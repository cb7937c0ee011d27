#include "planner/accuracy/serving_scorecard.hpp"

#include <doctest/doctest.h>

using namespace planner;

namespace {
ServingRun run_of(const std::string& source, const std::string& device, double predicted,
                  const std::string& confidence = "high") {
  ServingRun run;
  run.source = source;
  run.id = source + "-run";
  run.confidence = confidence;
  run.scenario.cluster.device.name = device;
  run.scenario.serving.engine.family = "vllm";
  run.figures = {{ServingMetric::throughput, 100, predicted}};
  return run;
}
const std::vector<ServingRun> scored{run_of("a", "h100", 110), run_of("b", "a100", 80),
                                     run_of("c", "a100", 300, "low")};
}  // namespace

TEST_CASE("The metrics' table counts what is trusted") {
  const Table table = serving_metric_table(scored, {});
  REQUIRE(table.rows.size() == 1);
  CHECK(table.rows[0][1] == "2");
  CHECK(table.rows[0][3] == "15.0 %");
}

TEST_CASE("Sources of low confidence are told apart") {
  const Table table = serving_source_table(scored);
  REQUIRE(table.rows.size() == 3);
  CHECK(table.rows[2][0] == "c (low confidence)");
  CHECK(table.rows[2][1] == "200.0 % (1)");
}

TEST_CASE("Coverage is a row a device and a column an engine") {
  const Table table = serving_coverage(scored);
  REQUIRE(table.rows.size() == 2);
  CHECK(table.columns[1].title == "vllm");
  CHECK(table.rows[0] == std::vector<std::string>{"a100", "20.0 % (1)"});
}

TEST_CASE("The scorecard has the runs where they are asked for") {
  const std::string text = serving_scorecard(scored, {}, false, false, {});
  CHECK(text.find("3 published runs of serving, 0 not predicted") == 0);
  CHECK(text.find("a-run") == std::string::npos);
  CHECK(serving_scorecard(scored, {}, true, true, {}).find("a-run") != std::string::npos);
  CHECK(serving_run_table(scored).rows.size() == 3);
}

TEST_CASE("Of one source no others are, and of low confidence nothing is covered") {
  const Table table = serving_metric_table({scored[0]}, {});
  REQUIRE(table.rows.size() == 1);
  CHECK(table.rows[0].back() == "no others; 100 % in the one in use");
  const std::string low = serving_scorecard({scored[2]}, {}, false, false, {});
  CHECK(low.find("None: every run here is of low confidence.") != std::string::npos);
  CHECK(low.find("Covered") == std::string::npos);
}
