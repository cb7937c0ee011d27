// The Megatron-Bridge export: fields that its configuration has, in words that bash and Hydra read.
#include "planner/frameworks/export_bridge.hpp"

#include <doctest/doctest.h>

#include <cstdlib>
#include <string>

#include "planner/frameworks/import_overrides.hpp"
#include "tests/costmodel/support/fixtures.hpp"
#include "tests/costmodel/support/scenarios.hpp"
#include "tests/planner/support/megatron_cases.hpp"
#include "tests/run_program.hpp"

namespace export_bridge_test {

using costmodel::ParallelPlan;
using costmodel::Scenario;
using fixtures::contains;

namespace {

std::string value_of(const planner::OverridesScript& exported, const std::string& field) {
  for (const auto& override : exported.overrides)
    if (override.field == field) return override.value;
  return "absent";
}

}  // namespace

TEST_CASE("what a recipe may say otherwise is said either way") {
  const Scenario s = megatron::tiny_llama();
  const auto out = planner::export_bridge(s, megatron::small_plan());
  CHECK(value_of(out, "model.gated_linear_unit") == "true");
  CHECK(value_of(out, "model.activation_func") == "silu");
  CHECK(value_of(out, "model.add_bias_linear") == "false");
  CHECK(value_of(out, "ddp.use_distributed_optimizer") == "false");
  CHECK(value_of(out, "model.overlap_p2p_comm") == "false");
  CHECK(value_of(out, "mixed_precision.bf16") == "true");
  CHECK(contains(out.script, "MixedPrecisionConfig(params_dtype=torch.bfloat16, "));
  CHECK(contains(out.script, "torchrun --nproc-per-node 8 --nnodes 2 \\\n"));
}

TEST_CASE("a layout stands between quotes of Hydra, and bash reads the script") {
  const Scenario s = megatron::tiny_llama();
  ParallelPlan plan = megatron::small_plan();
  plan.stage_layers = {5, 3};
  const auto out = planner::export_bridge(s, plan);
  CHECK(contains(out.script, "'model.pipeline_model_parallel_layout=\"Et*5|t*3,L\"'\n"));
  const program::Scratch scratch;
  scratch.write("launch.sh", out.script);
  const std::string file = (scratch.path() / "launch.sh").string();
  CHECK(std::system(("bash -n " + file).c_str()) == 0);
}

TEST_CASE("adapters of whole products, or of their parts, beside a checkpoint of the base") {
  const auto exported = [](const std::string& tuning) {
    const Scenario s = scenarios::read(
        "model: llama-tiny\ncluster: {base: dgx-h100, devices: 8}\n"
        "training: {global_batch: 64, sequence: 512, stack: megatron-bridge, fine_tuning: {" +
        tuning + "}}\nplan: {tp: 2}\n");
    return planner::export_bridge(s, resolve_plan(s)).script;
  };
  const std::string joint = exported("method: lora, rank: 8");
  CHECK(contains(joint, "from megatron.bridge.peft.lora import LoRA\n"));
  CHECK(contains(joint,
                 "    cfg.peft = LoRA(target_modules=[\"linear_qkv\", \"linear_proj\", "
                 "\"linear_fc1\", \"linear_fc2\"], dim=8, alpha=32, dropout=0)\n"));
  CHECK(contains(joint, "    finetune(config=cfg, forward_step_func=forward_step)\n"));
  CHECK(contains(joint, "checkpoint.pretrained_checkpoint=\"${PRETRAINED_CHECKPOINT:?"));
  CHECK(contains(joint, "\"${data[@]}\" \"${base[@]}\" \"${run[@]}\""));
  const std::string parts = exported("method: lora, targets: [q, v], dropout: 0.1");
  CHECK(contains(parts, "from megatron.bridge.peft.canonical_lora import CanonicalLoRA\n"));
  CHECK(contains(parts,
                 "CanonicalLoRA(target_modules=[\"linear_q\", \"linear_v\"], dim=16, alpha=32, "
                 "dropout=0.1)"));
  CHECK_FALSE(contains(exported("method: full"), "finetune("));
}

TEST_CASE("what Megatron Core refuses is refused with its reason") {
  const Scenario s = megatron::tiny_llama();
  ParallelPlan plan = megatron::small_plan();
  plan.schedule = costmodel::ScheduleKind::gpipe;
  CHECK_THROWS_WITH(planner::export_bridge(s, plan),
                    doctest::Contains("Megatron-LM has no schedule 'gpipe'"));
}

TEST_CASE("activations by name, and no fused bias where there is none") {
  const auto of = [](const char* model) {
    return planner::export_bridge(megatron::scenario_of(model), megatron::small_plan());
  };
  const auto squared = of("{base: nemotron-4-15b, layers: 8}");
  CHECK(value_of(squared, "model.activation_func") == "squared_relu");
  CHECK(value_of(squared, "model.bias_activation_fusion") == "false");
  CHECK(value_of(squared, "model.layernorm_zero_centered_gamma") == "true");
  const auto unbiased = of("{base: mpt-30b, layers: 8}");
  CHECK(value_of(unbiased, "model.activation_func") == "gelu");
  CHECK(value_of(unbiased, "model.bias_activation_fusion") == "false");
  CHECK(value_of(of("{base: gpt3-1.3b, layers: 8}"), "model.bias_activation_fusion") == "true");
}

TEST_CASE("windows, groups of micro-batches, epsilon and YaRN reach the model") {
  const auto of = [](const char* model) {
    return planner::export_bridge(megatron::scenario_of(model), megatron::small_plan());
  };
  const auto window = of("{base: mistral-7b, layers: 8}");
  CHECK(value_of(window, "model.window_size") == "[4095,0]");
  for (const auto& note : window.notes) CHECK_FALSE(contains(note, "window"));
  CHECK(value_of(of("{base: qwen3-8b, layers: 8}"), "model.layernorm_epsilon") == "1e-06");
  ParallelPlan grouped = megatron::small_plan();
  grouped.choices.group = 4;
  CHECK(value_of(planner::export_bridge(megatron::tiny_llama(), grouped),
                 "model.microbatch_group_size_per_vp_stage") == "4");
  ParallelPlan flat = megatron::small_plan();
  flat.pp = 1;
  flat.dp = 16 / flat.tp;
  flat.sequence_parallel = true;
  const auto latent =
      planner::export_bridge(megatron::scenario_of("{base: deepseek-v2-lite, layers: 4}"), flat);
  CHECK(value_of(latent, "model.rope_type") == "yarn");
  CHECK(value_of(latent, "model.rotary_scaling_factor") == "40");
  CHECK(value_of(latent, "model.mscale") == "0.707");
  CHECK(value_of(latent, "model.mscale_all_dim") == "0.707");
  CHECK(value_of(latent, "model.original_max_position_embeddings") == "4096");
  CHECK(value_of(latent, "model.moe_router_dtype") == "fp32");
  const auto plain = planner::export_bridge(
      megatron::scenario_of("{base: deepseek-v2-lite, layers: 4, rope_scaling_type: none, "
                            "rope_scaling_factor: 0}"),
      flat);
  CHECK(value_of(plain, "model.rotary_scaling_factor") == "1");  // the class has 40
}

TEST_CASE("activations of layers in host memory have a switch and a number") {
  const auto s = scenarios::read(
      "model: llama-3-8b\ncluster: {base: dgx-h100, devices: 8}\ntraining: {global_batch: 64, "
      "sequence: 4096}\nplan: {dp: 8, offload: {activations: {layers: 2}}}\n");
  const std::string script = planner::export_bridge(s, costmodel::resolve_plan(s)).script;
  CHECK(script.find("  model.cpu_offloading=true\n") != std::string::npos);
  CHECK(script.find("  model.cpu_offloading_num_layers=2\n") != std::string::npos);
  const auto job = planner::import_overrides(script, "x.sh");
  const auto* kept = job.scenario.find("plan")->find("offload")->find("activations");
  CHECK(kept->find("layers")->text == "2");
}

TEST_CASE("DeepEP is refused where Megatron-Bridge refuses it") {
  const auto exported = [](const std::string& cluster) {
    const Scenario s = scenarios::read(
        "model: qwen3-30b-a3b\ncluster: {base: " + cluster +
        ", devices: 8}\ntraining: {global_batch: 64, sequence: 4096, precision: bf16, "
        "stack: megatron-core-2026}\nplan: {ep: 8, dp: 8, zero: 1, dispatcher: deepep}\n");
    return planner::export_bridge(s, costmodel::resolve_plan(s));
  };
  CHECK(value_of(exported("dgx-h100"), "model.moe_flex_dispatcher_backend") == "deepep");
  CHECK_THROWS_WITH_AS(exported("dgx-gb200"), doctest::Contains("runs DeepEP on no GB200"),
                       costmodel::ConfigError);
}

}  // namespace export_bridge_test
