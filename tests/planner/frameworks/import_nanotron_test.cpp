// A configuration of nanotron as a scenario.
#include "planner/frameworks/import_nanotron.hpp"

#include <doctest/doctest.h>

#include <string>

#include "costmodel/base/error.hpp"
#include "tests/costmodel/support/scenarios.hpp"

namespace import_nanotron_test {

namespace {

std::string config(const std::string& more = "") {
  return "general: {project: p, run: r}\n"
         "model:\n  dtype: bfloat16\n  make_vocab_size_divisible_by: 8\n  model_config:\n"
         "    is_llama_config: true\n    hidden_size: 2048\n    intermediate_size: 8192\n"
         "    num_hidden_layers: 16\n    num_attention_heads: 32\n    num_key_value_heads: 8\n"
         "    hidden_act: silu\n    rms_norm_eps: 1.0e-05\n    max_position_embeddings: 4096\n"
         "    tie_word_embeddings: true\n    rope_theta: 500000\n    vocab_size: 50257\n" +
         more +
         "optimizer: {zero_stage: 1, accumulate_grad_in_fp32: true, clip_grad: 1.0}\n"
         "parallelism: {dp: 4, pp: 2, tp: 2, pp_engine: afab, tp_mode: REDUCE_SCATTER, "
         "recompute_layer: true}\n"
         "tokens: {micro_batch_size: 3, batch_accumulation_per_replica: 8, sequence_length: "
         "4096}\n";
}

}  // namespace

TEST_CASE("sizes, batch and model") {
  CHECK(planner::holds_nanotron(config()));
  CHECK_FALSE(planner::holds_nanotron("model: a\nplan: {}\n"));
  auto job = planner::import_nanotron(config(), "x.yaml");
  CHECK(job.left_out.empty());
  REQUIRE(job.missing.size() == 1);
  planner::set_cluster(job, "dgx-h100");
  const auto s = scenarios::read(to_yaml(job));
  CHECK(s.cluster.devices == 16);
  CHECK(s.training.global_batch == 3 * 8 * 4);
  CHECK(s.plan.pp == 2);
  CHECK(s.plan.zero == 1);
  CHECK(s.model.layers == 16);
  CHECK(s.model.vocab == 50272);  // the next multiple of 8 x tp
}

TEST_CASE("its optimizer, and what its own model has of qwen2") {
  std::string text = config("    attention_bias: false\n    sliding_window_size: 1024\n");
  text.replace(text.find("is_llama_config"), 15, "is_qwen2_config");
  text.replace(text.find("clip_grad"), 9, "optimizer_factory: {name: sgd}, clip_grad");
  const auto job = planner::import_nanotron(text, "x.yaml");
  CHECK(job.scenario.find("training")->find("optimizer")->text == "plain-sgd");
  CHECK(job.scenario.find("model")->find("qkv_bias")->text == "false");
  CHECK(job.scenario.find("model")->find("sliding_window")->text == "1024");
  CHECK(job.left_out.empty());
  text.replace(text.find("name: sgd"), 9, "name: lion");
  CHECK(planner::import_nanotron(text, "x.yaml").left_out.size() == 1);
}

TEST_CASE("experts of its own, and a value that is no number, are refused at their place") {
  CHECK_THROWS_WITH_AS(
      planner::import_nanotron(config("    moe_config: {num_experts: 8}\n"), "x.yaml"),
      doctest::Contains("moe_config of nanotron is not read here"), costmodel::ConfigError);
  std::string text = config();
  text.replace(text.find("dp: 4"), 5, "dp: x");
  CHECK_THROWS_WITH_AS(planner::import_nanotron(text, "x.yaml"), doctest::Contains("x.yaml:19:15"),
                       costmodel::ConfigError);
  // So is a field that its model lacks.
  text = config();
  text.replace(text.find("num_hidden_layers"), 17, "num_layers");
  CHECK_THROWS_WITH_AS(
      planner::import_nanotron(text, "x.yaml"),
      doctest::Contains("x.yaml:6:5: config.json lacks the key 'num_hidden_layers'"),
      costmodel::ConfigError);
}

}  // namespace import_nanotron_test
