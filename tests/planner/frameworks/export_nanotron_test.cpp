// A plan as nanotron's YAML, and back.
#include "planner/frameworks/export_nanotron.hpp"

#include <doctest/doctest.h>

#include <string>

#include "costmodel/base/error.hpp"
#include "costmodel/estimate/plan_estimate.hpp"
#include "planner/frameworks/import_nanotron.hpp"
#include "tests/costmodel/support/scenarios.hpp"

namespace export_nanotron_test {

namespace {

costmodel::Scenario scenario(const std::string& model, const std::string& plan) {
  return scenarios::read("model: " + model +
                         "\ncluster: {base: dgx-h100, devices: 16}\ntraining: {global_batch: 128, "
                         "sequence: 4096, precision: bf16, stack: nanotron" +
                         "}\nplan: {" + plan + "}\n");
}

// The YAML that the script writes.
std::string yaml_in(const std::string& script) {
  const std::size_t begin = script.find("<<'YAML'\n") + 9;
  return script.substr(begin, script.find("\nYAML\n", begin) + 1 - begin);
}

std::string refusal(const costmodel::Scenario& s) {
  try {
    planner::export_nanotron(s, resolve_plan(s));
  } catch (const costmodel::ConfigError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("plans come back with the same time and memory") {
  for (const char* model :
       {"llama-3.1-8b", "llama-3.2-1b", "qwen2-7b", "{base: llama-3-8b, vocab: 50257}"}) {
    for (const char* plan :
         {"tp: 2, dp: 8, zero: 1, micro_batch: 2, sequence_parallel: true",
          "tp: 2, pp: 2, dp: 4, zero: 0, micro_batch: 1, sequence_parallel: false, recompute: full",
          "pp: 4, dp: 4, zero: 1, micro_batch: 1, schedule: gpipe"}) {
      auto in = scenario(model, plan);
      if (in.model.rope_scaling != costmodel::RopeScaling::none) {
        CHECK(refusal(in).find("nanotron has no word for model.rope") != std::string::npos);
        continue;
      }
      const auto settled = resolve_plan(in);
      const auto out = planner::export_nanotron(in, settled);
      const std::string yaml = yaml_in(out.script);
      CHECK(planner::holds_nanotron(yaml));
      CHECK(yaml.find("rms_norm_eps: 1.0000") != std::string::npos);  // a number of YAML 1.1
      auto job = planner::import_nanotron(out.script, "x.sh");
      planner::set_cluster(job, "dgx-h100");
      CHECK(job.missing.empty());
      CHECK(job.left_out.empty());
      const auto back = scenarios::read(to_yaml(job));
      const auto before = estimate_of(in.model, in.cluster, in.training, settled);
      const auto after = estimate_of(back.model, back.cluster, back.training, resolve_plan(back));
      CHECK(after.iteration.value == doctest::Approx(before.iteration.value).epsilon(1e-9));
    }
  }
}

TEST_CASE("what nanotron cannot run, and what its models have no words for") {
  const std::string plan = "dp: 16, zero: 1";
  CHECK(refusal(scenario("llama-3-8b", plan)).empty());
  auto narrow = scenario("llama-3-8b", plan);
  narrow.training.precision = costmodel::Precision::fp8;
  CHECK(refusal(narrow).find("no dtype") != std::string::npos);
  CHECK(refusal(scenario("llama-3-8b", "tp: 16, dp: 1")).find("num_key_value_heads") !=
        std::string::npos);
  CHECK(refusal(scenario("qwen3-8b", plan)).find("no word for model.") != std::string::npos);
  CHECK(refusal(scenario("{base: gpt2, max_positions: 4096}", plan)).find("no word for model.") !=
        std::string::npos);
  CHECK(refusal(scenario("mixtral-8x7b", plan)).find("no word for model.") != std::string::npos);
}

}  // namespace export_nanotron_test
