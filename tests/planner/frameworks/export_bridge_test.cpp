// The Megatron-Bridge export: fields that its configuration has, in words that bash and Hydra read.
#include "planner/frameworks/export_bridge.hpp"

#include <doctest/doctest.h>

#include <cstdlib>
#include <string>

#include "tests/costmodel/support/fixtures.hpp"
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

TEST_CASE("what Megatron Core refuses is refused with its reason") {
  const Scenario s = megatron::tiny_llama();
  ParallelPlan plan = megatron::small_plan();
  plan.schedule = costmodel::ScheduleKind::gpipe;
  CHECK_THROWS_WITH(planner::export_bridge(s, plan),
                    doctest::Contains("Megatron-LM has no schedule 'gpipe'"));
}

}  // namespace export_bridge_test
