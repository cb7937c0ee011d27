// Fields that command lines and Python files set.
#include "planner/frameworks/overrides_text.hpp"

#include <doctest/doctest.h>

namespace overrides_text_test {

using Strings = std::vector<std::string>;

TEST_CASE("words of a command, with variables and lists") {
  const auto out = planner::read_overrides(
      "TP=4\nplan=(\n  model.tensor_model_parallel_size=$TP\n  "
      "'model.recompute_modules=[mlp,moe]'\n"
      ")\ntorchrun --nnodes 2 --nproc-per-node 8 run.py --recipe r_pretrain_config \"${plan[@]}\" "
      "++model.pipeline_model_parallel_layout='\"Et*2|t,L\"' --dataset mock FOO=1\n",
      "x.sh");
  REQUIRE(out.fields.size() == 3);
  CHECK(out.fields[0].field == "model.tensor_model_parallel_size");
  CHECK(out.fields[0].values == Strings{"4"});
  CHECK(out.fields[1].values == Strings{"mlp", "moe"});
  CHECK(out.fields[2].values == Strings{"Et*2|t,L"});
  CHECK(out.recipe == "r_pretrain_config");
  CHECK(out.world_size == 16);
  CHECK(out.per_node == 8);
}

TEST_CASE("lines of Python, with its constants and comments") {
  const auto out = planner::read_overrides(
      "recipe = llm.llama3_8b.pretrain_recipe(num_nodes=2)\n"
      "recipe.trainer.strategy.sequence_parallel = True  # with tp\n"
      "recipe.model.config.recompute_modules = [\"mlp\", 'moe']\n"
      "recipe.trainer.strategy.virtual_pipeline_model_parallel_size = None\n"
      "if cfg.model.num_layers == 8: pass\n"
      "cfg.mixed_precision = MixedPrecisionConfig(bf16=True)\n",
      "x.py");
  CHECK(out.recipe == "llama3_8b");
  REQUIRE(out.fields.size() == 4);
  CHECK(out.fields[3].field == "mixed_precision.bf16");
  CHECK(out.fields[0].field == "trainer.strategy.sequence_parallel");
  CHECK(out.fields[0].values == Strings{"true"});
  CHECK(out.fields[0].mark.line == 2);
  CHECK(out.fields[1].values == Strings{"mlp", "moe"});
  CHECK(out.fields[2].values == Strings{"null"});
}

TEST_CASE("statements of several lines, tuples, and what Python computes") {
  const auto out = planner::read_overrides(
      "cfg.model.window_size = (127, 0)\n"
      "cfg.model.recompute_modules = [\n    \"mlp\",\n    \"moe\",  # experts\n]\n"
      "cfg.mixed_precision = bf16_with_mxfp8_mixed()\n"
      "cfg.comm_overlap = CommOverlapConfig(\n    tp_comm_overlap=True,\n    x=3)\n"
      "cfg.train.global_batch_size = gbs or 512\n"
      "cfg.model.seq_length = length(4)\n",
      "x.py");
  REQUIRE(out.fields.size() == 4);
  CHECK(out.fields[0].values == Strings{"127", "0"});
  CHECK(out.fields[1].values == Strings{"mlp", "moe"});
  CHECK(out.fields[2].values == Strings{"bf16_with_mxfp8_mixed"});
  CHECK(out.fields[3].field == "comm_overlap.tp_comm_overlap");
  CHECK(out.computed ==
        Strings{"train.global_batch_size = gbs or 512", "model.seq_length = length(4)"});
}

}  // namespace overrides_text_test
