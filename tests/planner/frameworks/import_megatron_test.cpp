// Runs of Megatron-LM as scenarios; and plans that are exported and come back the same.
#include "planner/frameworks/import_megatron.hpp"

#include <doctest/doctest.h>

#include <string>

#include "costmodel/estimate/plan_estimate.hpp"
#include "planner/frameworks/launch_script.hpp"
#include "planner/frameworks/megatron_log.hpp"
#include "planner/frameworks/megatron_rules.hpp"
#include "planner/frameworks/megatron_script.hpp"
#include "planner/frameworks/megatron_words.hpp"
#include "tests/costmodel/support/scenarios.hpp"
#include "tests/planner/support/megatron_cases.hpp"
#include "tests/planner/support/megatron_runs.hpp"
#include "tests/planner/support/round_trips.hpp"
#include "tests/sanitized.hpp"

namespace import_megatron_test {

using costmodel::ParallelPlan;
using costmodel::Scenario;
using megatron::of_script;
using planner::ImportedJob;

namespace {

// As a file that `evaluate` takes.
Scenario scenario_of(ImportedJob job, const std::string& cluster) {
  planner::set_cluster(job, cluster);
  CHECK(job.missing.empty());
  return scenarios::read(to_yaml(job));
}

// Exports the plan, reads the script and holds what comes back against what went out.
void check_round_trip(const Scenario& in, const ParallelPlan& plan, const std::string& cluster) {
  const auto exported = planner::export_megatron(in, plan);
  const auto arguments =
      planner::read_megatron_script(planner::launch_script(exported, in, plan), "x.sh");
  for (const auto& a : arguments.list) CHECK_MESSAGE(planner::is_megatron_flag(a.flag), a.flag);
  const ImportedJob job = planner::import_megatron(arguments);
  CHECK_MESSAGE(job.left_out.empty(), (job.left_out.empty() ? "" : job.left_out.front()));
  round_trips::check_same(in, scenario_of(job, cluster), plan);
}

}  // namespace

TEST_CASE("a launch script becomes a scenario; what no key says is named") {
  const ImportedJob job = of_script(megatron_runs::script);
  REQUIRE(job.missing.size() == 1);
  CHECK(job.missing.front().key == "cluster.base");
  REQUIRE(job.left_out.size() == 2);
  CHECK(job.left_out[0] == "--window-size 128: it is no window of keys before a query, as (127,0)");
  CHECK(job.left_out[1] == "--foo 3: no argument of Megatron-LM core 0.20");
  const Scenario s = scenario_of(job, "selene");
  CHECK(s.model.layers == 96);
  CHECK(s.model.vocab == 50257);
  CHECK(s.model.ffn_hidden == 4 * 12288);
  CHECK(s.training.precision == costmodel::Precision::bf16);
  const ParallelPlan plan = resolve_plan(s);
  CHECK(plan.tp == 8);
  CHECK(plan.pp == 16);
  CHECK(plan.dp == 1);
  CHECK(plan.sequence_parallel);
}

TEST_CASE("patterns that a script takes from outside are left out, not refused") {
  const ImportedJob job = of_script(
      "torchrun --nproc-per-node 8 pretrain_gpt.py --num-layers 8 --hidden-size 512 \\\n"
      "  --num-attention-heads 8 --num-experts 4 --moe-layer-freq $FREQ \\\n"
      "  --pipeline-model-parallel-size 2 --pipeline-model-parallel-layout \"$LAYOUT\"\n");
  REQUIRE(job.left_out.size() == 2);
  CHECK(job.left_out[0].find("every layer is taken to have experts") != std::string::npos);
  CHECK(job.left_out[1].find("stages are taken as even") != std::string::npos);
  CHECK(job.scenario.find("plan")->find("stage_layers") == nullptr);
}

TEST_CASE("arguments that the script takes from outside are named, after a switch too") {
  const ImportedJob job = of_script(
      "torchrun --nproc-per-node 8 pretrain_gpt.py --num-layers 8 --hidden-size 512 \\\n"
      "  --num-attention-heads 8 --global-batch-size 64 $EXTRA --swiglu $MORE\n");
  CHECK(job.scenario.find("training")->find("global_batch")->text == "64");
  CHECK(job.left_out == std::vector<std::string>{"$EXTRA: has no value in the script",
                                                 "$MORE: has no value in the script"});
}

TEST_CASE("two exchanges of context parallelism within one another are the outer one") {
  const ImportedJob job = of_script(
      "torchrun --nproc-per-node 8 pretrain_gpt.py --num-layers 8 --hidden-size 512 \\\n"
      "  --context-parallel-size 4 --cp-comm-type a2a+p2p\n");
  CHECK(job.scenario.find("plan")->find("cp_comm")->text == "p2p");
  REQUIRE(job.left_out.size() == 1);
  CHECK(job.left_out.front().find("taken as p2p") != std::string::npos);
}

TEST_CASE("the type of gradients: of the precision-aware optimizer, and of Megatron-FSDP") {
  const auto type = [](const std::string& flags) {
    const auto job = of_script(
        "torchrun --nproc-per-node 8 pretrain_gpt.py --num-layers 8 --hidden-size 512 --bf16 " +
        flags + "\n");
    CHECK(job.left_out.empty());
    return job.scenario.find("training")->find("gradient_precision")->text;
  };
  const std::string sharded = "--use-megatron-fsdp --data-parallel-sharding-strategy optim_grads ";
  CHECK(type("") == "fp32");
  CHECK(type("--use-precision-aware-optimizer --main-grads-dtype bf16") == "bf16");
  CHECK(type("--use-precision-aware-optimizer --main-grads-dtype fp32") == "fp32");
  CHECK(type(sharded) == "bf16");
  CHECK(type(sharded + "--accumulate-allreduce-grads-in-fp32") == "bf16");
  CHECK(type(sharded + "--megatron-fsdp-main-grads-dtype fp32") == "fp32");
  // Before core 0.17 the flag of all gradients decided.
  const std::string table =
      "  bf16 .... True\n  num_layers .... 2\n  use_megatron_fsdp .... True\n"
      "  accumulate_allreduce_grads_in_fp32 .... True\n";
  const auto logged = [&](const std::string& more) {
    const auto text = "------------ arguments ------------\n" + table + more +
                      "-------- end of arguments ---------\n";
    return planner::import_megatron(planner::read_megatron_log(text, "x.log"))
        .scenario.find("training")
        ->find("gradient_precision")
        ->text;
  };
  CHECK(logged("") == "fp32");
  CHECK(logged("  megatron_fsdp_main_params_dtype .... torch.float32\n") == "bf16");
  CHECK(logged("  megatron_fsdp_main_grads_dtype .... torch.float32\n") == "fp32");
}

TEST_CASE("a log becomes a scenario") {
  const ImportedJob job =
      planner::import_megatron(planner::read_megatron_log(megatron_runs::log, "x.log"));
  CHECK(job.left_out.empty());
  const Scenario s = scenario_of(job, "dgx-h100");
  CHECK(s.model.kv_heads == 8);
  CHECK(s.model.gated_mlp);
  CHECK(s.model.kv_lora_rank == 0);
  CHECK(s.model.rotary_base == 500'000);
  CHECK_FALSE(s.model.linear_bias);
  CHECK(resolve_plan(s).zero == 1);
  CHECK(resolve_plan(s).dp == 8);
}

TEST_CASE("Muon, sharded by whole matrices under its former name too, and SGD without momentum") {
  const auto taken = [](const std::string& arguments) {
    return scenario_of(
        of_script(
            "torchrun --nproc-per-node 8 pretrain_gpt.py --num-layers 8 --hidden-size 512 \\\n"
            "  --num-attention-heads 8 --seq-length 512 --max-position-embeddings 512 \\\n"
            "  --micro-batch-size 1 --global-batch-size 8 --bf16 --vocab-size 50257 " +
            arguments + "\n"),
        "dgx-h100");
  };
  for (const char* arguments :
       {"--optimizer dist_muon", "--optimizer muon --use-distributed-optimizer"}) {
    CAPTURE(arguments);
    const Scenario s = taken(arguments);
    CHECK(s.training.optimizer == costmodel::Optimizer::muon);
    CHECK(resolve_plan(s).zero == 1);
  }
  CHECK(taken("--optimizer sgd --sgd-momentum 0").training.optimizer ==
        costmodel::Optimizer::plain_sgd);
  CHECK(taken("--optimizer sgd").training.optimizer == costmodel::Optimizer::sgd);
}

// Plans of Llama 3.1 8B on a DGX H100 and of others, with lists of one word and of two.
TEST_CASE("scripts come back with the same plan and the same price") {
  const std::string head =
      "model: llama-3.1-8b\ncluster: {base: dgx-h100, devices: 8}\n"
      "training: {global_batch: 64, precision: bf16, sequence: ";
  for (const std::string& yaml : {
           head + "4096}\nplan: {tp: 2, dp: 4, zero: 1, micro_batch: 1, sequence_parallel: true}",
           head + "8192}\nplan: {dp: 8, zero: 1, micro_batch: 1}",
           head + "4096, loss: unfused}\nplan: {dp: 8, zero: 1, micro_batch: 1}",
           head + "4096}\nplan: {dp: 8, zero: 1, micro_batch: 1, recompute: {modules: [layernorm, "
                  "mlp]}}",
           head + "4096, overlap: {cuda_graph: [attn, mlp]}}\nplan: {dp: 8, zero: 1, "
                  "micro_batch: 1}",
           head + "4096, overlap: {cuda_graph: [attn]}}\nplan: {tp: 2, dp: 4, zero: 1, "
                  "micro_batch: 1, sequence_parallel: true}",
           std::string("model: qwen3-235b-a22b\ncluster: {base: dgx-h100, devices: 256}\n"
                       "training: {global_batch: 1024, sequence: 4096, precision: bf16}\n"
                       "plan: {pp: 2, ep: 8, dp: 128, zero: 1, micro_batch: 1, "
                       "recompute: {modules: [moe_act, layernorm]}}"),
       }) {
    INFO(yaml);
    const Scenario in = scenarios::read(yaml);
    const ParallelPlan plan = resolve_plan(in);
    const auto script = planner::launch_script(planner::export_megatron(in, plan), in, plan);
    const Scenario out = scenario_of(of_script(script), "dgx-h100");
    round_trips::check_same(in, out, plan);
    CHECK(out.training.stack.kernels.loss == in.training.stack.kernels.loss);
    const auto price = [&](const Scenario& s) {
      return estimate_of(s.model, s.cluster, s.training, plan);
    };
    CHECK(price(out).iteration.value == doctest::Approx(price(in).iteration.value).epsilon(1e-9));
    CHECK(price(out).peak.value == doctest::Approx(price(in).peak.value).epsilon(1e-9));
  }
}

TEST_CASE("200 random plans that Megatron-LM takes come back from their scripts") {
  const auto accepts = [](const Scenario& in, const ParallelPlan& plan) {
    return planner::megatron_violations(in, plan).empty();
  };
  const int plans = sanitized ? 15 : 200;
  CHECK(round_trips::of_random_plans(plans, accepts, check_round_trip) == plans);
}

}  // namespace import_megatron_test
