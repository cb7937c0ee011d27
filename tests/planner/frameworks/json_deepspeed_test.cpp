// The DeepSpeed export: keys that DeepSpeed documents, sizes that multiply, and plans it refuses.
#include "planner/frameworks/json_deepspeed.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/costmodel/support/fixtures.hpp"
#include "tests/costmodel/support/scenarios.hpp"
#include "tests/planner/support/deepspeed_keys.hpp"

namespace json_deepspeed_test {

using fixtures::contains;
using nlohmann::json;

namespace {

costmodel::Scenario scenario(const std::string& plan, const std::string& training = "",
                             const std::string& stack = "deepspeed-2021") {
  return scenarios::read(
      "model: {kind: gpt, layers: 8, hidden: 1024, heads: 16, vocab: 51200, max_positions: 2048}\n"
      "cluster: {base: dgx-a100, devices: 16}\n"
      "training: {global_batch: 64, sequence: 2048, precision: bf16, stack: {base: " +
      stack +
      ", max_zero: 3, max_zero_in_pipeline: 3, interleaved: true, zero_bubble: true, "
      "selective_recompute: true, "
      "context_parallel: true, sequence_parallel: true, attention: flash}" +
      training + "}\nplan: {" + plan + "}\n");
}

planner::Exported exported(const costmodel::Scenario& s) {
  return planner::export_deepspeed(s, costmodel::resolve_plan(s));
}

std::string refused(const std::string& plan, const std::string& training = "",
                    const std::string& stack = "deepspeed-2021") {
  const auto s = scenario(plan, training, stack);
  const auto found = planner::deepspeed_violations(s, costmodel::resolve_plan(s));
  return found.empty()
             ? ""
             : found.front().key + ": " + found.front().reason + "; " + found.front().remedy;
}

}  // namespace

TEST_CASE("every key is one that DeepSpeed documents, and the batch multiplies") {
  for (const auto& [plan, training] :
       {std::pair{"dp: 16, micro_batch: 2, zero: 3", ""},
        {"dp: 16, micro_batch: 2, zero: 3, dp_replicate: 2", ""},
        {"dp: 16, zero: 3, zero_hpz_partition_size: 8, zero_quantized_weights: true, "
         "zero_quantized_gradients: true",
         ""},
        {"dp: 16, zero: 3, offload: parameters", ""},
        {"dp: 16, zero: 3, offload: {optimizer: 0.5}", ""},
        {"tp: 2, dp: 8, zero: 2, recompute: full", ""},
        {"pp: 4, dp: 4, micro_batch: 4, zero: 1", ", optimizer: sgd"},
        {"dp: 16", ", gradient_precision: bf16"}}) {
    const auto s = scenario(plan, training);
    const json config = json::parse(exported(s).json);
    deepspeed_keys::check(config);
    const auto p = costmodel::resolve_plan(s);
    CHECK(config.contains("train_batch_size") == (p.tp == 1));
    if (p.tp == 1) CHECK(config["train_batch_size"] == 64);
    CHECK(config["train_micro_batch_size_per_gpu"].get<int>() *
              config["gradient_accumulation_steps"].get<int>() * p.dp ==
          64);
    CHECK(config["zero_optimization"]["stage"] == p.zero);
    CHECK(config["bf16"]["enabled"] == true);
    CHECK(config["data_types"]["grad_accum_dtype"] != "fp16");
    CHECK(config.contains("activation_checkpointing") ==
          (p.recompute.granularity == costmodel::Recomputation::full));
    CHECK(config.contains("tensor_parallel") == (p.tp > 1));
  }
}

TEST_CASE("the script writes the same configuration and launches on every node") {
  const auto s = scenario("pp: 2, dp: 8, zero: 1");
  const auto out = exported(s);
  CHECK(contains(out.text, "<<'JSON'\n" + out.json + "JSON\n"));
  CHECK(contains(out.text, "deepspeed --hostfile \"$HOSTFILE\" --num_nodes 2 --num_gpus 8 \\\n"));
  CHECK(contains(out.text, "PipelineModule(layers, num_stages=2"));
  CHECK(out.notes.size() == 2);  // the pipeline, and the hostfile
}

TEST_CASE("what DeepSpeed cannot run is refused with key, reason and remedy") {
  CHECK(refused("dp: 16, zero: 3").empty());
  CHECK(contains(refused("pp: 2, dp: 8, zero: 2"), "zero: DeepSpeed: ZeRO-2 and ZeRO-3 are"));
  CHECK(contains(refused("pp: 4, dp: 4, vpp: 2"), "schedule: DeepSpeed: PipelineModule runs 1f1b"));
  CHECK(contains(refused("pp: 2, dp: 8, schedule: v-half"), "not v-half; set schedule: 1f1b"));
  CHECK(contains(refused("cp: 2, dp: 8, cp_comm: p2p"), "cp_comm: DeepSpeed: context parallelism"));
  CHECK(refused("cp: 2, dp: 8, cp_comm: a2a").empty());
  CHECK(contains(refused("tp: 2, dp: 8, zero: 3"), "AutoTP supports ZeRO stages 0, 1 and 2"));
  CHECK(contains(refused("tp: 2, pp: 2, dp: 4"), "needs Megatron-DeepSpeed"));
  CHECK(refused("tp: 2, pp: 2, dp: 4", "", "megatron-deepspeed-2022").empty());
  CHECK(contains(refused("dp: 16, recompute: selective"), "recomputes whole layers"));
  CHECK(
      contains(refused("dp: 16, recompute: {granularity: full, layers: 2}"), "takes every layer"));
  auto narrow = scenario("dp: 16");
  narrow.training.precision = costmodel::Precision::fp8;
  const auto found = planner::deepspeed_violations(narrow, costmodel::resolve_plan(narrow));
  REQUIRE(found.size() == 1);
  CHECK(found.front().reason == "DeepSpeed: there is no fp8 training, only fp32, fp16 and bf16");
}

TEST_CASE("what its validators of 2026 refuse, and what they want in addition") {
  const auto with = [](const std::string& plan, const std::string& training) {
    auto s = scenario(plan);
    if (training == "moments") s.training.moment_precision = costmodel::Precision::bf16;
    if (training == "sums") s.training.gradient_precision = costmodel::Precision::fp32;
    if (training == "sgd") s.training.optimizer = costmodel::Optimizer::sgd;
    if (training == "muon") s.training.optimizer = costmodel::Optimizer::muon;
    return s;
  };
  const auto fault = [&](const std::string& plan, const std::string& training) {
    const auto s = with(plan, training);
    const auto found = planner::deepspeed_violations(s, costmodel::resolve_plan(s));
    return found.empty() ? std::string() : found.front().key;
  };
  CHECK(fault("dp: 16, zero: 2", "moments") == "moment_precision");
  CHECK(fault("dp: 16, zero: 0", "sums") == "gradient_precision");
  CHECK(fault("dp: 16, zero: 1", "sums").empty());
  CHECK(fault("dp: 16, zero: 2, offload: {optimizer: 0.5}", "") == "offload");
  CHECK(fault("dp: 16, zero: 1", "muon").empty());
  const auto config = [&](const std::string& plan, const std::string& training) {
    return json::parse(exported(with(plan, training)).json);
  };
  CHECK(config("dp: 16, zero: 1", "muon").at("optimizer").at("type") == "Muon");
  CHECK(config("dp: 16, zero: 2", "sgd").at("zero_allow_untested_optimizer") == true);
  CHECK_FALSE(config("dp: 16, zero: 2", "").contains("zero_allow_untested_optimizer"));
  CHECK_FALSE(config("tp: 2, dp: 8, zero: 2", "").contains("train_batch_size"));  // AutoTP
  const std::string script = exported(with("dp: 16, zero: 3", "")).text;
  CHECK(contains(script, "--hostfile \"$HOSTFILE\" --num_nodes 2"));
  CHECK(contains(script, "scontrol show hostnames"));
}

}  // namespace json_deepspeed_test
