// The Megatron-Bridge export: fields that its configuration has, in words that bash and Hydra read.
#include "planner/frameworks/export_bridge.hpp"

#include <doctest/doctest.h>

#include <cstdlib>
#include <string>

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
  CHECK(value_of(out, "model.activation_func") == "torch.nn.functional.silu");
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

}  // namespace export_bridge_test
