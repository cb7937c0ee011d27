// Plan keys from Megatron-LM's arguments.
#include "planner/frameworks/megatron_plan.hpp"

#include <doctest/doctest.h>

#include <string>

#include "costmodel/config/yaml.hpp"
#include "planner/frameworks/megatron_script.hpp"

namespace megatron_plan_test {

namespace {

// The text of a key, or its items between commas.
std::string plan_key(const std::string& arguments, const std::string& key) {
  const auto run =
      planner::read_megatron_script("--num-layers 16 --micro-batch-size 1 " + arguments, "x.sh");
  planner::MegatronImport in(run);
  planner::read_megatron_plan(in);
  const auto* value = in.job.scenario.find("plan")->find(key);
  if (value == nullptr) return "";
  std::string text = value->text;
  for (const auto& item : value->items) text += item.text + ",";
  return text;
}

const std::string four = "--pipeline-model-parallel-size 4 ";

}  // namespace

TEST_CASE("virtual stages by their number, or by the layers of each") {
  CHECK(plan_key(four + "--num-virtual-stages-per-pipeline-rank 2", "vpp") == "2");
  CHECK(plan_key(four + "--num-layers-per-virtual-pipeline-stage 1", "vpp") == "4");
  CHECK(plan_key(four, "vpp").empty());
}

TEST_CASE("more stages than layers, and sizes below 0, are refused at their flag") {
  const std::string many =
      "--pipeline-model-parallel-size 100000 --num-virtual-stages-per-pipeline-rank 100000 "
      "--decoder-first-pipeline-num-layers 1";
  CHECK_THROWS_WITH(plan_key(many, "pp"), doctest::Contains("stages of 16 layers"));
  CHECK_THROWS_WITH(plan_key("--pipeline-model-parallel-size -4", "pp"),
                    doctest::Contains("is below 0"));
}

TEST_CASE("uneven stages: a layout, counts of the first and the last, embedding and loss") {
  CHECK(plan_key(four + "--pipeline-model-parallel-layout 'Et*3|t*5|t*5|t*3,L'", "stage_layers") ==
        "3,5,5,3,");
  CHECK(plan_key(four + "--decoder-first-pipeline-num-layers 2", "stage_layers") == "2,4,4,4,");
  CHECK(plan_key("--num-layers 18 " + four +
                     "--decoder-first-pipeline-num-layers 2 "
                     "--decoder-last-pipeline-num-layers 4",
                 "stage_layers") == "2,6,6,4,");
  const std::string both =
      "--account-for-embedding-in-pipeline-split --account-for-loss-in-pipeline-split";
  CHECK(plan_key("--num-layers 14 " + four + both, "stage_layers").empty());  // as by default
  CHECK(plan_key("--pipeline-model-parallel-size 2 " + both, "stage_layers") == "8,8,");
  CHECK_THROWS_WITH(plan_key(four + "--pipeline-model-parallel-layout 'Et*8|t*8L'", "pp"),
                    doctest::Contains("is no layout of 4 ranks"));
}

TEST_CASE("optimizer states in host memory") {
  CHECK(plan_key("", "offload").empty());
  for (const auto& [flags, share] :
       {std::pair{"--optimizer-cpu-offload", "1"},
        {"--optimizer-cpu-offload --optimizer-offload-fraction 0.5", "0.5"}}) {
    const auto run = planner::read_megatron_script(
        std::string("--num-layers 16 --micro-batch-size 1 ") + flags, "x.sh");
    planner::MegatronImport in(run);
    planner::read_megatron_plan(in);
    const auto* offload = in.job.scenario.find("plan")->find("offload");
    REQUIRE(offload != nullptr);
    CHECK(offload->find("optimizer")->text == share);
  }
}

TEST_CASE("activations of layers in host memory") {
  const auto run = planner::read_megatron_script(
      "--num-layers 16 --micro-batch-size 1 --cpu-offloading-num-layers 2", "x.sh");
  planner::MegatronImport in(run);
  planner::read_megatron_plan(in);
  const auto* kept = in.job.scenario.find("plan")->find("offload")->find("activations");
  CHECK(kept->find("layers")->text == "2");
}

TEST_CASE("activations of modules in host memory") {
  const auto run = planner::read_megatron_script(
      "--num-layers 16 --micro-batch-size 1 --fine-grained-activation-offloading "
      "--offload-modules core_attn attn_proj",
      "x.sh");
  planner::MegatronImport in(run);
  planner::read_megatron_plan(in);
  const auto* kept = in.job.scenario.find("plan")->find("offload")->find("activations");
  REQUIRE(kept != nullptr);
  REQUIRE(kept->find("modules")->items.size() == 2);
  CHECK(kept->find("modules")->items.back().text == "attn_proj");
}

TEST_CASE("ZeRO, recomputation and experts") {
  CHECK(plan_key("--use-distributed-optimizer", "zero") == "1");
  CHECK(plan_key("--use-megatron-fsdp --data-parallel-sharding-strategy optim_grads_params",
                 "zero") == "3");
  const std::string fsdp =
      "--use-megatron-fsdp --data-parallel-sharding-strategy optim_grads_params ";
  CHECK(plan_key(fsdp, "dp_replicate").empty());
  CHECK(plan_key(fsdp + "--num-distributed-optimizer-instances 4", "dp_replicate") == "4");
  CHECK(
      plan_key(fsdp + "--num-distributed-optimizer-instances 4 --outer-dp-sharding-strategy optim",
               "outer_dp_sharding") == "optim");
  CHECK_THROWS_WITH(plan_key(fsdp + "--num-distributed-optimizer-instances 4 "
                                    "--outer-dp-sharding-strategy all",
                             "zero"),
                    doctest::Contains("is no strategy of Megatron-FSDP"));
  CHECK(plan_key("--recompute-granularity full --recompute-method uniform "
                 "--recompute-num-layers 1",
                 "recompute") == "full");
  CHECK(plan_key("--recompute-activations", "recompute") == "selective");
  CHECK(plan_key("--num-experts 8 --tensor-model-parallel-size 2", "etp") == "2");
  CHECK(plan_key("--num-experts 8 --moe-enable-deepep", "dispatcher") == "deepep");
  CHECK(plan_key("--num-experts 8", "dispatcher") == "allgather");
}

TEST_CASE("groups of micro-batches, and the stages that a pattern's bars cut") {
  const auto plan_of = [](const std::string& arguments) {
    const auto run = planner::read_megatron_script(
        "--hidden-size 1024 --num-attention-heads 16 --micro-batch-size 1 " + arguments, "x.sh");
    planner::MegatronImport in(run);
    planner::read_megatron_plan(in);
    const costmodel::Value* plan = in.job.scenario.find("plan");
    return costmodel::to_yaml(*plan);
  };
  const std::string interleaved =
      "--num-layers 8 --pipeline-model-parallel-size 2 --num-virtual-stages-per-pipeline-rank 2 "
      "--microbatch-group-size-per-virtual-pipeline-stage ";
  CHECK(plan_of(interleaved + "4").find("micro_batch_group: 4") != std::string::npos);
  CHECK(plan_of(interleaved + "2").find("micro_batch_group") == std::string::npos);
  const std::string uneven = plan_of(
      "--hybrid-layer-pattern 'M-|M-M' "
      "--pipeline-model-parallel-size 2");
  CHECK(uneven.find("stage_layers: [2, 3]") != std::string::npos);
  const std::string even = plan_of(
      "--hybrid-layer-pattern 'M-|M-|M-|M-' "
      "--pipeline-model-parallel-size 2");
  CHECK(even.find("vpp: 2") != std::string::npos);
  CHECK(even.find("stage_layers") == std::string::npos);
}

}  // namespace megatron_plan_test
