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

TEST_CASE("what NeMo 2.x has no field of is refused") {
  const Scenario s = megatron::tiny_llama();
  ParallelPlan plan = megatron::small_plan();
  plan.stage_layers = {5, 3};
  CHECK_THROWS_WITH(
      planner::export_nemo(s, plan),
      doctest::Contains("NeMo 2.x has no field of --pipeline-model-parallel-layout Et*5|t*3,L; "
                        "export to megatron-bridge or megatron"));
  plan = {.tp = 2, .pp = 2, .dp = 4, .zero = 3};
  CHECK(planner::nemo_violations(s, plan).front().reason ==
        "NeMo 2.x has no field of --ckpt-format fsdp_dtensor");
}

}  // namespace export_nemo_test
