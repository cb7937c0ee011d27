// The NeMo export: fields that its recipes have, in Python, and plans that NeMo 2.x cannot express.
#include "planner/frameworks/export_nemo.hpp"

#include <doctest/doctest.h>

#include <cstdlib>
#include <string>

#include "tests/costmodel/support/fixtures.hpp"
#include "tests/planner/support/megatron_cases.hpp"
#include "tests/run_program.hpp"

namespace export_nemo_test {

using costmodel::ParallelPlan;
using costmodel::Scenario;
using fixtures::contains;

TEST_CASE("a Python program in a script that bash reads") {
  const auto out = planner::export_nemo(megatron::tiny_llama(), megatron::small_plan());
  CHECK(contains(out.script, "pretrain_recipe(name=\"plan\", num_nodes=2, num_gpus_per_node=8)\n"));
  CHECK(contains(out.script, "    recipe.trainer.strategy.tensor_model_parallel_size = 2\n"));
  CHECK(contains(out.script, "    recipe.trainer.plugins.precision = \"bf16-mixed\"\n"));
  CHECK(
      contains(out.script, "    recipe.model.config.activation_func = torch.nn.functional.silu\n"));
  CHECK(contains(out.script, "run.Config(MegatronCommOverlapCallback, tp_comm_overlap="));
  CHECK(contains(out.script, "# Note: NeMo 3 has no language models"));
  const program::Scratch scratch;
  scratch.write("launch.sh", out.script);
  CHECK(std::system(("bash -n " + (scratch.path() / "launch.sh").string()).c_str()) == 0);
}

namespace {

std::string script_of(const Scenario& s, const ParallelPlan& plan) {
  return planner::export_nemo(s, plan).script;
}

// What is refused first.
std::string refused(const Scenario& s, const ParallelPlan& plan) {
  const auto found = planner::nemo_violations(s, plan);
  return found.empty() ? "" : found.front().reason;
}

const char* const experts =
    "{kind: moe, layers: 4, hidden: 256, heads: 4, vocab: 512, ffn_hidden: 512, experts: 8, "
    "top_k: 2, expert_ffn_hidden: 256, first_dense_layers: 1}";

}  // namespace

TEST_CASE("Megatron-FSDP is the strategy's, with its checkpoints and a model without memory") {
  const Scenario s = megatron::tiny_llama();
  const std::string sharded = script_of(s, {.tp = 2, .dp = 8, .zero = 3});
  for (const char* line :
       {"trainer.strategy.fsdp = \"megatron\"", "trainer.strategy.ddp.use_megatron_fsdp = True",
        "trainer.strategy.ddp.data_parallel_sharding_strategy = \"optim_grads_params\"",
        "trainer.strategy.ddp.average_in_collective = False",
        "trainer.strategy.save_ckpt_format = \"fsdp_dtensor\"",
        "model.config.init_model_with_meta_device = True"}) {
    CHECK_MESSAGE(contains(sharded, std::string("    recipe.") + line + "\n"), line);
    CHECK_FALSE(contains(script_of(s, megatron::small_plan()), line));
  }
  CHECK(contains(script_of(s, {.dp = 16, .zero = 2}), "= \"optim_grads\"\n"));
}

TEST_CASE("what the recipe's own model has and the plan's has not is taken back") {
  const std::string script = script_of(megatron::tiny_llama(), megatron::small_plan());
  for (const char* field :
       {"use_transformer_engine_full_layer_spec", "layernorm_zero_centered_gamma"})
    CHECK(contains(script, std::string("    recipe.model.config.") + field + " = False\n"));
  Scenario centred = megatron::tiny_llama();
  centred.model.layernorm_1p = true;
  CHECK(contains(script_of(centred, megatron::small_plan()),
                 "recipe.model.config.layernorm_zero_centered_gamma = True\n"));
}

TEST_CASE("what the strategy sets on the model stands with the strategy") {
  const Scenario s = megatron::tiny_llama();
  ParallelPlan plan = megatron::small_plan();
  plan.stage_layers = {5, 3};
  CHECK(contains(script_of(s, plan),
                 "recipe.trainer.strategy.pipeline_model_parallel_layout = \"Et*5|t*3,L\"\n"));
  const Scenario uneven = megatron::scenario_of("{base: llama-tiny, layers: 7}");
  CHECK(contains(script_of(uneven, megatron::small_plan()),
                 "recipe.trainer.strategy.account_for_loss_in_pipeline_split = True\n"));
}

TEST_CASE("layers of two kinds and latent attention have classes of their own") {
  ParallelPlan plan{.tp = 1, .pp = 1, .dp = 16, .ep = 4};
  const std::string mixed = script_of(megatron::scenario_of(experts), plan);
  CHECK(contains(mixed, "run.Partial(get_gpt_decoder_block_spec, use_transformer_engine=True)"));
  CHECK(contains(mixed, "recipe.model.config.moe_layer_freq = [0, 1, 1, 1]\n"));
  const std::string latent = script_of(megatron::scenario_of("deepseek-v2-lite"), plan);
  CHECK(contains(latent, "run.Config(DeepSeekModel, config=run.Config(DeepSeekConfig, "));
  CHECK(contains(latent, "recipe.model.config.kv_lora_rank = 512\n"));
  CHECK_FALSE(contains(latent, "transformer_layer_spec"));
  plan.experts.dispatcher = costmodel::Dispatcher::deepep;
  CHECK(contains(script_of(megatron::scenario_of(experts), plan),
                 "recipe.model.config.moe_enable_deepep = True\n"));
}

TEST_CASE("what NeMo 2.x has no field of is refused") {
  Scenario s = megatron::tiny_llama();
  s.training.overlap.cuda_graph = true;
  CHECK_THROWS_WITH(
      planner::export_nemo(s, megatron::small_plan()),
      doctest::Contains("NeMo 2.x has no field of --cuda-graph-impl transformer_engine; export to "
                        "another framework"));
  ParallelPlan plan{.tp = 1, .pp = 1, .dp = 16, .ep = 4};
  plan.experts.dispatcher = costmodel::Dispatcher::hybridep;
  CHECK(refused(megatron::scenario_of(experts), plan) ==
        "NeMo 2.x has no field of --moe-flex-dispatcher-backend hybridep");
  plan.experts.dispatcher = costmodel::Dispatcher::deepep;
  plan.experts.shared_overlap = true;
  CHECK(refused(megatron::scenario_of(experts), plan) ==
        "NeMo 2.x: moe_shared_expert_overlap works with alltoall only");
  CHECK(refused(megatron::scenario_of("llama-3-8b"), {.tp = 16, .pp = 1, .dp = 1}) ==
        "NeMo 2.x: tensor ranks share no group of queries");
}

}  // namespace export_nemo_test
