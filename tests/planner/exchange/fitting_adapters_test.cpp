// Adapters that a file asks for, as far as the model's layers may have them.
#include "planner/exchange/fitting_adapters.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "costmodel/base/escape.hpp"
#include "costmodel/config/yaml.hpp"
#include "costmodel/scenario/scenario_parts.hpp"
#include "tests/costmodel/support/fixtures.hpp"

namespace fitting_adapters_test {

namespace {

struct Fitted {
  std::string targets, left_out;
};

Fitted fitted(const std::string& model, const std::string& targets,
              const std::string& stack = "peft") {
  planner::ImportedJob job;
  job.scenario = costmodel::parse_yaml(
      "{training: {stack: " + stack + ", fine_tuning: {method: lora, targets: " + targets + "}}}",
      "job.yaml");
  planner::fit_adapters(job,
                        costmodel::find_model(costmodel::scalar_value(model), fixtures::configs()));
  const costmodel::Value* list =
      job.scenario.find("training")->find("fine_tuning")->find("targets");
  Fitted result{list->text, ""};
  for (const auto& item : list->items) result.targets += item.text + " ";
  for (const std::string& line : job.left_out) result.left_out += line + "\n";
  return result;
}

}  // namespace

TEST_CASE("a dense model keeps what the file asks for") {
  CHECK(fitted("llama-3-8b", "all-linear").targets == "all-linear");
  CHECK(fitted("llama-3-8b", "[q, v]").targets == "q v ");
  CHECK(fitted("llama-3-8b", "[q, v]").left_out.empty());
}

TEST_CASE("of experts, latent attention and layers that keep a state, what has a model") {
  CHECK(fitted("mixtral-8x7b", "all-linear").targets == "q k v o ");
  CHECK(fixtures::contains(fitted("mixtral-8x7b", "all-linear").left_out, "adapters of experts"));
  CHECK(fitted("mixtral-8x7b", "[q, up, down]").targets == "q ");
  CHECK(fixtures::contains(fitted("mixtral-8x7b", "[q, up, down]").left_out, "up, down"));
  CHECK(fitted("mixtral-8x7b", "[gate]").targets == "q k v o ");
  CHECK(fixtures::contains(fitted("mixtral-8x7b", "[gate]").left_out, "priced as"));
  CHECK(fitted("deepseek-v3", "[q, o]").targets == "o ");
  CHECK(fitted("qwen3.5-9b", "[q, v]").targets == "q v ");
  CHECK(fitted("qwen3.5-9b", "[q, v]").left_out.empty());  // its delta nets have no q_proj
  CHECK(fitted("qwen3.5-9b", "all-linear").targets == "q k v o gate up down ");
  CHECK(fixtures::contains(fitted("qwen3.5-9b", "all-linear").left_out, "keep a state"));
}

TEST_CASE("experts keep their adapters where the stack has these") {
  const std::string grouped = "{base: megatron-bridge, adapters: {experts: true}}";
  const auto all = fitted("mixtral-8x7b", "all-linear", grouped);
  CHECK(all.targets == "all-linear");
  CHECK(all.left_out.empty());
  CHECK(fitted("mixtral-8x7b", "[q, up, down]", grouped).targets == "q up down ");
  const auto bridge = fitted("mixtral-8x7b", "all-linear", "megatron-bridge");
  CHECK(bridge.targets == "q k v o ");
  CHECK_FALSE(fixtures::contains(bridge.left_out, "PEFT"));
}

TEST_CASE("a projection that the model has not is left out") {
  CHECK(fitted("gpt2", "[q, gate, up]").targets == "q up ");
}

TEST_CASE("a framework's name of several products, and one of none") {
  costmodel::Value targets;
  CHECK(planner::add_projection("linear_fc1", targets));
  CHECK(planner::add_projection("o_proj", targets));
  CHECK_FALSE(planner::add_projection("lm_head", targets));
  REQUIRE(targets.items.size() == 3);
  CHECK(targets.items[0].text == "gate");
  CHECK(targets.items[1].text == "up");
  CHECK(targets.items[2].text == "o");
}

TEST_CASE("a job without adapters is as it was") {
  planner::ImportedJob job;
  job.scenario = costmodel::parse_yaml("{training: {fine_tuning: {method: full}}}", "job.yaml");
  CHECK_FALSE(planner::has_targets(job));
  planner::fit_adapters(
      job, costmodel::find_model(costmodel::scalar_value("gpt2"), fixtures::configs()));
  CHECK(job.left_out.empty());
}

TEST_CASE("projections of a regular expression: alternatives, and names") {
  using Names = std::vector<std::string>;
  CHECK(planner::projections_in(".*self_attn\\.(q|v)_proj") == Names{"q_proj", "v_proj"});
  CHECK(planner::projections_in(".*\\.up_proj|.*\\.up_proj") == Names{"up_proj"});
  CHECK(planner::projections_in(".*").empty());
}

}  // namespace fitting_adapters_test
