// A ds_config.json as a scenario; and plans that are exported and come back the same.
#include "planner/frameworks/json_import_deepspeed.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "costmodel/base/error.hpp"
#include "costmodel/config/yaml.hpp"
#include "costmodel/plan/plan_keys.hpp"
#include "planner/frameworks/json_deepspeed.hpp"
#include "tests/costmodel/support/fixtures.hpp"
#include "tests/costmodel/support/scenarios.hpp"
#include "tests/planner/support/deepspeed_keys.hpp"
#include "tests/planner/support/random_scenario.hpp"
#include "tests/sanitized.hpp"

namespace json_import_deepspeed_test {

using costmodel::ParallelPlan;
using costmodel::Scenario;
using planner::import_deepspeed;

namespace {

// The scenario with a stack of DeepSpeed's, and without overlaps that ds_config.json has no word
// for.
std::string with_stack(std::string training, const std::string& stack) {
  for (const char* key : {"stack: ", ", overlap: "}) {
    const std::size_t from = training.find(key);
    if (from == std::string::npos) continue;
    const bool map = training[from + std::string(key).size()] == '{';
    const std::size_t end = map ? training.find('}', from) + 1 : training.find_first_of(",}", from);
    training.replace(from, end - from, key[0] == 's' ? "stack: " + stack : "");
  }
  return training;
}

// What a pipeline of one stage, or layers that divide, say in several ways.
ParallelPlan as_read(ParallelPlan plan, const Scenario& in) {
  if (plan.pp == 1) plan.schedule = costmodel::usual_schedule(1);
  if (in.model.experts == 0) plan.experts = {};
  if (plan.cp == 1) plan.cp_comm = {};
  plan.stage_layers.clear();
  return plan;
}

void check_back(const Scenario& in, const ParallelPlan& sent,
                const random_scenario::Scenario& drawn) {
  const auto exported = planner::export_deepspeed(in, sent);
  deepspeed_keys::check(nlohmann::json::parse(exported.json));
  REQUIRE(planner::holds_deepspeed(exported.text));
  auto job = import_deepspeed(exported.text, "x.sh");
  CHECK_MESSAGE(job.left_out.empty(), (job.left_out.empty() ? "" : job.left_out.front()));
  planner::set_cluster(job, drawn.cluster);
  planner::set_key(job, "model=" + drawn.model, {});
  planner::set_key(job, "training.sequence=" + std::to_string(in.training.sequence), {});
  CHECK_MESSAGE(job.missing.empty(), (job.missing.empty() ? "" : job.missing.front().key));
  const Scenario out = scenarios::read(to_yaml(job));
  CHECK(out.cluster.devices == sent.devices());
  CHECK(to_yaml(to_value(as_read(resolve_plan(out), out))) == to_yaml(to_value(as_read(sent, in))));
  CHECK(out.training.stack.name == in.training.stack.name);
  CHECK(out.training.global_batch == in.training.global_batch);
  CHECK(out.training.precision == in.training.precision);
  const auto is_wide = [](const Scenario& s) {
    return s.training.precision == costmodel::Precision::fp32 ||
           s.training.gradient_precision == costmodel::Precision::fp32;
  };
  CHECK(is_wide(out) == is_wide(in));
  CHECK((is_wide(out) || out.training.gradient_precision == out.training.precision));
  CHECK(out.training.optimizer == in.training.optimizer);
  CHECK(out.training.overlap.overlap_grad_reduce == in.training.overlap.overlap_grad_reduce);
}

}  // namespace

TEST_CASE("what the file does not say is missing, what no key says is left out") {
  const auto job = import_deepspeed(
      R"({"train_batch_size": "auto", "train_micro_batch_size_per_gpu": 2, "fp16": {"enabled": true},
          "zero_optimization": {"stage": 3, "round_robin_gradients_unknown": 1}})",
      "ds.json");
  CHECK(job.scenario.find("plan")->find("zero")->text == "3");
  CHECK(job.scenario.find("plan")->find("micro_batch")->text == "2");
  CHECK(job.scenario.find("training")->find("precision")->text == "fp16");
  CHECK(job.scenario.find("training")->find("global_batch")->text == "REPLACE");
  REQUIRE(job.left_out.size() == 1);
  CHECK(job.left_out.front().starts_with("zero_optimization.round_robin_gradients_unknown"));
  CHECK_THROWS_WITH(import_deepspeed("{", "ds.json"), doctest::Contains("is not JSON"));
}

TEST_CASE("micro-batches of a rank that the file has are those of the batch that follows") {
  auto job = import_deepspeed(
      R"({"train_batch_size": "auto", "train_micro_batch_size_per_gpu": 2,
          "gradient_accumulation_steps": 8, "zero_optimization": {"stage": 3}})",
      "ds.json");
  CHECK(job.accumulation == 8);
  planner::set_key(job, "cluster.devices=64", {});
  planner::assume_missing(job, 8);
  CHECK(job.scenario.find("training")->find("global_batch")->text == "1024");
}

TEST_CASE("what DeepSpeed keeps in host memory is the plan's offload") {
  const auto offload = [](const std::string& zero) {
    const auto job = import_deepspeed(
        R"({"train_batch_size": 8, "zero_optimization": {)" + zero + "}}", "ds.json");
    const costmodel::Value* value = job.scenario.find("plan")->find("offload");
    return value == nullptr ? "" : costmodel::flow_text(*value);
  };
  const std::string cpu = R"({"device": "cpu"})";
  CHECK(offload(R"("stage": 3)").empty());
  CHECK(offload(R"("stage": 2, "offload_optimizer": )" + cpu) == "optimizer");
  CHECK(offload(R"("stage": 3, "offload_param": )" + cpu + R"(, "offload_optimizer": )" + cpu) ==
        "parameters");
  CHECK(offload(R"("stage": 3, "offload_optimizer": {"device": "cpu", "ratio": 0.3})") ==
        "{optimizer: 0.3}");
  CHECK(offload(R"("stage": 3, "offload_optimizer": {"device": "none"})").empty());
  const std::string drives = R"({"device": "nvme", "nvme_path": "/local_nvme"})";
  CHECK(offload(R"("stage": 3, "offload_optimizer": )" + drives) == "{optimizer: 1, to: nvme}");
  CHECK(offload(R"("stage": 3, "offload_param": )" + drives + R"(, "offload_optimizer": )" + cpu) ==
        "{optimizer: 1, parameters: 1, to: host, parameters_to: nvme}");
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
  const auto all = [](const std::string& zero) {
    const auto job = import_deepspeed("{\"zero_optimization\": " + zero + "}", "ds.json");
    return *job.scenario.find("training")->find("overlap");
  };
  const auto overlap = [&](const std::string& zero) {
    return all(zero).find("overlap_grad_reduce")->text;
  };
  CHECK(overlap(R"({"stage": 3})") == "true");
  CHECK(overlap(R"({"stage": 2})") == "false");
  CHECK(overlap(R"({"stage": 3, "overlap_comm": false})") == "false");
  const auto alone = all(R"({"stage": 3, "overlap_comm": false})");
  REQUIRE(alone.find("overlap_param_gather") != nullptr);
  CHECK(alone.find("overlap_param_gather")->text == "false");
  CHECK(all(R"({"stage": 3})").find("overlap_param_gather") == nullptr);
}

TEST_CASE("a nested value is left out in three letters, one nested without end refused") {
  const auto with = [](std::size_t levels) {
    return "{\"train_batch_size\": 8, \"x\": " + std::string(levels, '[') +
           std::string(levels, ']') + "}";
  };
  CHECK_THROWS_WITH_AS(import_deepspeed(with(100'000), "ds.json"),
                       "ds.json:1:93: values nest deeper than 64 levels; flatten the file",
                       costmodel::ConfigError);
  const auto job = import_deepspeed(with(40), "ds.json");
  REQUIRE(job.left_out.size() == 1);
  CHECK(job.left_out.front() == "x: ...: no key says it");
}

TEST_CASE("plans that DeepSpeed takes come back from ds_config.json") {
  for (const std::string plan :
       {"{dp: 16, micro_batch: 2, zero: 3}", "{dp: 16, zero: 0}",
        "{dp: 16, zero: 3, dp_replicate: 4}", "{dp: 16, zero: 3, offload: parameters}",
        "{dp: 16, zero: 3, offload: {optimizer: 0.5}}",
        "{dp: 16, zero: 3, offload: {optimizer: 1, parameters: 1, to: nvme}}",
        "{dp: 16, zero: 3, offload: {optimizer: 1, parameters: 1, to: nvme, parameters_to: host}}",
        "{dp: 16, zero: 3, zero_hpz_partition_size: 8, "
        "zero_quantized_weights: true, zero_quantized_gradients: true}",
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
    const auto exported = planner::export_deepspeed(in, sent);
    // With AutoTP the script alone has the devices.
    auto job = import_deepspeed(sent.tp > 1 ? exported.text : exported.json, "ds.json");
    CHECK(job.left_out.empty());
    planner::set_cluster(job, "dgx-a100");
    planner::set_key(job, "model=" + model, {});
    planner::set_key(job, "training.sequence=2048", {});
    CHECK(job.missing.empty());
    const auto out = scenarios::read(to_yaml(job));
    CHECK(costmodel::resolve_plan(out) == sent);
    CHECK(out.training.global_batch == 64);
    CHECK(out.training.precision == in.training.precision);
    CHECK(storage_bytes(out.training.gradient_precision) ==
          storage_bytes(in.training.gradient_precision));
    CHECK(out.training.overlap.overlap_grad_reduce == in.training.overlap.overlap_grad_reduce);
  }
}

TEST_CASE("200 random plans that DeepSpeed takes come back from their scripts") {
  const int count = sanitized ? 15 : 200;
  int accepted = 0;
  for (std::uint32_t seed = 1; accepted < count && seed < 40'000; ++seed) {
    random_scenario::Draw draw(seed);
    auto drawn = random_scenario::draw_scenario(draw);
    const auto is = [&](const char* kind) { return drawn.model.find(kind) != std::string::npos; };
    if (is("t5") || is("mamba") || is("hybrid")) continue;
    drawn.training = with_stack(drawn.training,
                                draw.word({"deepspeed", "deepspeed", "megatron-deepspeed-2022"}));
    try {
      const Scenario in = scenarios::read(drawn.yaml());
      const ParallelPlan plan = resolve_plan(in);
      if (!planner::deepspeed_violations(in, plan).empty()) continue;
      ++accepted;
      INFO("seed ", seed, "\n", drawn.yaml());
      check_back(in, plan, drawn);
    } catch (const costmodel::ConfigError& error) {
      const std::string what = error.what();
      CHECK_MESSAGE(what.starts_with("test.yaml") == true, what);
    }
  }
  CHECK(accepted == count);
}

TEST_CASE("JSON that cannot be read, and sizes that are none, are refused where they stand") {
  const auto refused = [](const std::string& text) {
    return fixtures::config_error([&] { import_deepspeed(text, "ds.json"); });
  };
  CHECK(
      refused("{\n  \"a\": 1,\n  \"b\" 2\n}") ==
      "ds.json:3:7: is not JSON: it cannot be read from here on; check brackets, quotes and commas "
      "here");
  CHECK(refused("{\"train_batch_size\": 1e999}") ==
        "ds.json:1:22: '1e999' is beyond any number; allowed: up to 1e308");
  CHECK(refused("[1]") == "ds.json: is not a JSON object; give a ds_config.json");
  CHECK(refused("{\"train_batch_size\": 8,\n \"zero_optimization\": {\"stage\": 9}}") ==
        "ds.json:2:24: zero_optimization.stage is 9; write a whole number from 0 to 3");
  CHECK(refused("{\"train_batch_size\": 0}") ==
        "ds.json:1:2: train_batch_size is 0; write a whole number from 1 to 1000000000000");
  CHECK(refused("{\"train_micro_batch_size_per_gpu\": 1.5}").starts_with("ds.json:1:2: "));
}

}  // namespace json_import_deepspeed_test
