#include "planner/accuracy/serving_evidence.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <set>

using namespace planner;

namespace {
const std::string evidence_folder = SHARDPLAN_SOURCE_DIR "/configs/evidence/serving";
ServingRun run_of(const std::string& source, std::vector<ServingFigure> figures) {
  ServingRun run;
  run.source = source;
  run.figures = std::move(figures);
  return run;
}
}  // namespace

TEST_CASE("Evidence of serving is told from that of training") {
  CHECK(is_serving_evidence({evidence_folder}));
  CHECK_FALSE(is_serving_evidence({SHARDPLAN_SOURCE_DIR "/configs/evidence"}));
}

TEST_CASE("There are at least forty trusted measurements of four sources, each with a figure") {
  const auto runs = read_serving_runs({evidence_folder}, costmodel::config_path({}));
  std::set<std::string> sources;
  std::size_t trusted = 0;
  for (const ServingRun& run : runs) {
    CHECK_MESSAGE(!run.figures.empty(), run.id);
    if (run.confidence == "low") continue;
    ++trusted;
    sources.insert(run.source);
  }
  CHECK(trusted >= 40);
  CHECK(sources.size() >= 4);
}

TEST_CASE("A run is predicted in its own metrics, and a wrong one says why") {
  auto runs = read_serving_runs({evidence_folder + "/vllm-custom-all-reduce.yaml"},
                                costmodel::config_path({}));
  REQUIRE_FALSE(runs.empty());
  predict(runs.front());
  CHECK(runs.front().fault.empty());
  for (const ServingFigure& f : runs.front().figures) CHECK(std::abs(f.log_error()) < 0.6);
  runs.front().scenario.serving.input.mean = 1e6;
  predict(runs.front());
  CHECK(runs.front().fault.find("one request has") != std::string::npos);
}

TEST_CASE("Every source counts alike in the mean") {
  const auto t = ServingMetric::throughput;
  const std::vector<ServingRun> runs{run_of("a", {{t, 100, 110}}), run_of("a", {{t, 100, 110}}),
                                     run_of("a", {{t, 100, 110}}), run_of("b", {{t, 100, 70}}),
                                     run_of("c", {{t, 100, 0}})};
  const auto score = score_of(runs, t, [](const ServingRun&) { return true; });
  CHECK(score.figures == 4);
  CHECK(score.sources == 2);
  CHECK(score.mean_error == doctest::Approx(0.2));
  CHECK(score.median_error == doctest::Approx(0.1));
}
