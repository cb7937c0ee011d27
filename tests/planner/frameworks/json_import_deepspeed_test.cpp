// A ds_config.json as a scenario; and plans that are exported and come back the same.
#include "planner/frameworks/json_import_deepspeed.hpp"

#include <doctest/doctest.h>

#include <string>

#include "planner/frameworks/json_deepspeed.hpp"
#include "tests/costmodel/support/scenarios.hpp"

namespace json_import_deepspeed_test {

using planner::import_deepspeed;

TEST_CASE("what the file does not say is missing, what no key says is left out") {
  const auto job = import_deepspeed(
      R"({"train_batch_size": "auto", "train_micro_batch_size_per_gpu": 2, "fp16": {"enabled": true},
          "zero_optimization": {"stage": 3, "offload_optimizer": {"device": "cpu"}}})",
      "ds.json");
  CHECK(job.scenario.find("plan")->find("zero")->text == "3");
  CHECK(job.scenario.find("plan")->find("micro_batch")->text == "2");
  CHECK(job.scenario.find("training")->find("precision")->text == "fp16");
  CHECK(job.scenario.find("training")->find("global_batch")->text == "REPLACE");
  REQUIRE(job.left_out.size() == 1);
  CHECK(job.left_out.front().starts_with("zero_optimization.offload_optimizer: "));
  CHECK_THROWS_WITH(import_deepspeed("{", "ds.json"), doctest::Contains("is not a JSON object"));
}

TEST_CASE("what the file leaves to a trainer is missing, and the defaults are DeepSpeed's") {
  const auto training = [](const std::string& text, const std::string& key) {
    const auto job = import_deepspeed("{\"train_batch_size\": 8, " + text + "}", "ds.json");
    return job.scenario.find("training")->find(key)->text;
  };
  CHECK(training(R"("bf16": {"enabled": "auto"})", "precision") == "REPLACE");
  CHECK(training(R"("bf16": true)", "precision") == "REPLACE");
  CHECK(training(R"("bf16": {"enabled": "auto"}, "fp16": {"enabled": true})", "precision") ==
        "fp16");
  CHECK(training(R"("bf16": {"enabled": false})", "precision") == "fp32");
  const auto overlap = [](const std::string& zero) {
    const auto job = import_deepspeed("{\"zero_optimization\": " + zero + "}", "ds.json");
    return job.scenario.find("training")->find("overlap")->find("overlap_grad_reduce")->text;
  };
  CHECK(overlap(R"({"stage": 3})") == "true");
  CHECK(overlap(R"({"stage": 2})") == "false");
  CHECK(overlap(R"({"stage": 3, "overlap_comm": false})") == "false");
}

TEST_CASE("a value nested without end is left out in three letters") {
  const std::string deep = std::string(100'000, '[') + std::string(100'000, ']');
  const auto job = import_deepspeed("{\"train_batch_size\": 8, \"x\": " + deep + "}", "ds.json");
  REQUIRE(job.left_out.size() == 1);
  CHECK(job.left_out.front() == "x: ...: no key says it");
}

TEST_CASE("plans that DeepSpeed takes come back from ds_config.json") {
  for (const std::string plan : {"{dp: 16, micro_batch: 2, zero: 3}", "{dp: 16, zero: 0}",
                                 "{tp: 2, dp: 8, zero: 2, recompute: full}",
                                 "{dp: 16, micro_batch: 4, zero: 1, recompute: full}"}) {
    const std::string model =
        "{kind: gpt, layers: 8, hidden: 1024, heads: 16, vocab: 51200, max_positions: 2048}";
    const auto in =
        scenarios::read("model: " + model +
                        "\ncluster: {base: dgx-a100, devices: 16}\ntraining: {global_batch: "
                        "64, sequence: 2048, precision: bf16, stack: deepspeed-2021}\nplan: " +
                        plan + "\n");
    const auto sent = costmodel::resolve_plan(in);
    auto job = import_deepspeed(planner::export_deepspeed(in, sent).json, "ds.json");
    CHECK(job.left_out.empty());
    planner::set_cluster(job, "dgx-a100");
    planner::set_key(job, "model=" + model, {});
    planner::set_key(job, "training.sequence=2048", {});
    CHECK(job.missing.empty());
    const auto out = scenarios::read(to_yaml(job));
    CHECK(costmodel::resolve_plan(out) == sent);
    CHECK(out.training.global_batch == 64);
    CHECK(out.training.precision == in.training.precision);
    CHECK(out.training.gradient_precision == in.training.gradient_precision);
    CHECK(out.training.overlap.overlap_grad_reduce == in.training.overlap.overlap_grad_reduce);
  }
}

}  // namespace json_import_deepspeed_test
