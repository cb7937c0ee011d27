#include "planner/accuracy/serving_fit.hpp"

#include <doctest/doctest.h>

#include "costmodel/config/yaml.hpp"

using namespace planner;

namespace {
std::vector<ServingRun> few_runs() {
  const std::string folder = SHARDPLAN_SOURCE_DIR "/configs/evidence/serving/";
  auto runs =
      read_serving_runs({folder + "vllm-custom-all-reduce.yaml", folder + "nim-1.8-llama-70b.yaml"},
                        costmodel::config_path({}));
  return runs;
}
double error_of(const std::vector<ServingRun>& runs) {
  return score_of(runs, ServingMetric::throughput, [](const ServingRun&) { return true; })
      .mean_error;
}
}  // namespace

TEST_CASE("A fit gives back constants that measurements were made with, and leaves the prior") {
  auto runs = few_runs();
  for (ServingRun& run : runs) {
    auto& engine = run.scenario.serving.engine;
    engine.constants = engine.prior;
    engine.constants.memory_share *= 0.9;
    predict(run);
    for (ServingFigure& f : run.figures) f.measured = f.predicted;
    run.confidence = "high";
  }
  auto unfitted = runs;
  for (ServingRun& run : unfitted) {
    run.scenario.serving.engine.constants = run.scenario.serving.engine.prior;
    predict(run);
  }
  const auto fit = fit_serving(runs, 1);
  CHECK(error_of(runs) < 0.6 * error_of(unfitted));
  CHECK(fit.factors.at("shared")[1] < 1);
  CHECK(fit.factors.count("vllm") == 1);
}

TEST_CASE("A left-out source does not move its own prediction") {
  auto runs = few_runs();
  for (ServingRun& run : runs) run.confidence = "high";
  auto wrong = runs;
  for (ServingRun& run : wrong) {
    if (run.source != runs.front().source) continue;
    for (ServingFigure& f : run.figures) f.measured *= 1.2;
  }
  leave_one_source_out(runs, 1);
  leave_one_source_out(wrong, 1);
  CHECK(runs.front().figures.front().predicted ==
        doctest::Approx(wrong.front().figures.front().predicted));
  CHECK(runs.back().figures.front().predicted !=
        doctest::Approx(wrong.back().figures.front().predicted).epsilon(1e-9));
}

TEST_CASE("A fit is written with the factors and the intervals that it has") {
  costmodel::ServingFit fit;
  fit.factors["vllm"].fill(1);
  fit.factors["vllm"][0] = 1.5;
  fit.intervals[0] = {0.8, 1.25};
  const std::string text = costmodel::to_yaml(fit_value(fit));
  CHECK(text.find("kernel_s: 1.5") != std::string::npos);
  CHECK(text.find("host_step_s") == std::string::npos);
  CHECK(text.find("output_tokens_per_s:\n    low: 0.8\n    high: 1.25") != std::string::npos);
}
