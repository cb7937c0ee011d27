// What reports print of towers: lines, JSON, the parts of the first stage, and who refuses them.
#include "planner/report/tower_report.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "costmodel/estimate/plan_estimate.hpp"
#include "planner/report/explain_operators.hpp"
#include "planner/report/json_plan.hpp"
#include "tests/costmodel/support/scenarios.hpp"
#include "tests/planner/support/in_process.hpp"

namespace tower_report_test {

using namespace costmodel;
using fixtures::contains;

namespace {

const std::string vision =
    "{patch: 14, image_size: 224, stem: [linear 256], layers: 3, hidden: 256, heads: 4, "
    "ffn_hidden: 1024, projector: [merge 4, linear 2048 bias]}";

std::string yaml(const std::string& training, const std::string& plan) {
  return "model: {base: llama-3.2-1b, vision: " + vision +
         "}\ncluster: {base: dgx-h100, devices: 8}\n"
         "training: {global_batch: 16, sequence: 1024, precision: bf16" +
         training + "}\nplan: " + plan + "\n";
}

Scenario scenario(const std::string& training, const std::string& plan) {
  return scenarios::read(yaml(training, plan));
}

std::string line(const std::string& training, const std::string& plan) {
  const Scenario s = scenario(training, plan);
  Evaluator evaluator(s.model, s.cluster, s.training);
  const auto facts = planner::tower_facts(evaluator.estimate(resolve_plan(s)), s, evaluator);
  REQUIRE(facts.size() == 1);
  CHECK(facts.front().first == "Vision");
  return facts.front().second;
}

}  // namespace

TEST_CASE("a line has size, training, tokens, time and memory of a tower") {
  const std::string both = line(", images: 2", "{dp: 8}");
  CHECK(contains(both,
                 "trained; 2 images a sequence, 256 tokens each of which the language model "
                 "reads 64; forward "));
  CHECK(contains(both, " of the first stage's, "));
  CHECK(contains(line(", frozen: [vision]", "{dp: 8}"), " of them trained; 1 image a sequence"));
  CHECK(contains(line(", frozen: [vision, projector]", "{tp: 8}"), "frozen; 1 image a sequence"));
  CHECK(contains(line("", "{tp: 8}"), "; complete on every tensor rank"));
  CHECK_FALSE(contains(line("", "{tp: 4, dp: 2}"), "tensor rank"));
}

TEST_CASE("the parts of the first stage add up, towers among them") {
  for (const char* const plan : {"{tp: 2, pp: 2, dp: 2}", "{pp: 2, dp: 4, recompute: full}"}) {
    const Scenario s = scenario(", images: 2", plan);
    const ParallelPlan own = resolve_plan(s);
    Evaluator evaluator(s.model, s.cluster, s.training);
    const Estimate e = evaluator.estimate(own);
    const auto parts = planner::stage_parts(evaluator.cost(own), 0, own, evaluator);
    Seconds forward, backward;
    for (const auto& part : parts) {
      forward += part.forward;
      backward += part.backward;
    }
    CHECK(forward.value == doctest::Approx(e.stage_forward[0].value).epsilon(1e-9));
    CHECK(backward.value == doctest::Approx(e.stage_backward[0].value).epsilon(1e-9));
    const auto figures = planner::tower_figures(e, s, evaluator).front();
    Seconds own_forward;
    for (const auto& part : parts)
      if (part.name.starts_with("vision")) own_forward += part.forward;
    CHECK(figures.forward.value == doctest::Approx(own_forward.value).epsilon(1e-9));
  }
}

TEST_CASE("JSON has the same figures, and a model without towers has none") {
  const Scenario s = scenario(", images: 2, frozen: [vision]", "{pp: 2, dp: 4}");
  Evaluator evaluator(s.model, s.cluster, s.training);
  const Estimate e = evaluator.estimate(resolve_plan(s));
  const auto json = planner::evaluation_json(e, s);
  REQUIRE(json["towers"].size() == 1);
  const auto& row = json["towers"][0];
  CHECK(row["input"] == "vision");
  CHECK((row["inputs_per_sequence"] == 2 && row["encoder_tokens"] == 256));
  CHECK(row["trained_parameters"] == 1024.0 * 2048 + 2048);
  CHECK(row["forward_s"].get<double>() > row["backward_s"].get<double>());
  CHECK(e.parameters - e.trained_parameters ==
        row["parameters"].get<double>() - row["trained_parameters"].get<double>());
  const Scenario text = scenario(", images: 0", "{pp: 2, dp: 4}");
  Evaluator alone(text.model, text.cluster, text.training);
  CHECK_FALSE(
      planner::evaluation_json(alone.estimate(resolve_plan(text)), text).contains("towers"));
}

TEST_CASE("exports have no words for towers, and refuse them") {
  const program::Scratch scratch;
  scratch.write("tower.yaml", yaml("", "{dp: 8}"));
  const std::string refusal =
      in_process::printed("export " + (scratch.path() / "tower.yaml").string() + " --to megatron");
  CHECK(contains(refusal, "the export to megatron has no words for towers"));
  CHECK(contains(refusal, "--set training.images=0"));
}

}  // namespace tower_report_test
