// Overrides of Megatron-Bridge as scenarios; and plans that are exported and come back the same.
#include "planner/frameworks/import_overrides.hpp"

#include <doctest/doctest.h>

#include <map>
#include <set>
#include <string>

#include "costmodel/base/error.hpp"
#include "planner/frameworks/export_bridge.hpp"
#include "planner/frameworks/export_nemo.hpp"
#include "planner/frameworks/megatron_rules.hpp"
#include "tests/costmodel/support/fixtures.hpp"
#include "tests/planner/support/field_lists.hpp"
#include "tests/planner/support/round_trips.hpp"
#include "tests/sanitized.hpp"

namespace import_overrides_test {

using costmodel::ParallelPlan;
using costmodel::Scenario;
using planner::ImportedJob;

namespace {

Scenario scenario_of(ImportedJob job, const std::string& cluster) {
  planner::set_cluster(job, cluster);
  CHECK(job.missing.empty());
  return scenarios::read(to_yaml(job));
}

// Neither framework keeps more learned positions than tokens.
Scenario shortened(Scenario in) {
  if (in.model.positions == costmodel::Positions::learned)
    in.model.max_positions = in.training.sequence;
  return in;
}

// Every field is one that the framework has, set once.
void check_fields(const planner::OverridesScript& exported, const std::string& list) {
  static std::map<std::string, std::set<std::string>> lists;
  if (!lists.contains(list)) lists[list] = field_lists::read(list);
  std::set<std::string> seen;
  for (const auto& field : exported.overrides) {
    CHECK_MESSAGE(lists[list].contains(field.field), field.field);
    CHECK_MESSAGE(seen.insert(field.field).second, field.field);
  }
}

void check_bridge(const Scenario& in, const ParallelPlan& plan, const std::string& cluster) {
  const auto exported = planner::export_bridge(in, plan);
  check_fields(exported, "bridge_keys.txt");
  REQUIRE(planner::holds_bridge_overrides(exported.script));
  const ImportedJob job = planner::import_overrides(exported.script, "x.sh");
  CHECK(job.format == planner::JobFormat::bridge);
  CHECK_MESSAGE(job.left_out.empty(), (job.left_out.empty() ? "" : job.left_out.front()));
  const Scenario out = scenario_of(job, cluster);
  round_trips::check_same(shortened(in), out, plan);
  if (in.training.stack.kernels.loss == costmodel::LossKernel::te)
    CHECK(out.training.stack.kernels.loss == costmodel::LossKernel::te);
}

void check_nemo(const Scenario& in, const ParallelPlan& plan, const std::string& cluster) {
  const auto exported = planner::export_nemo(in, plan);
  check_fields(exported, "nemo_keys.txt");
  REQUIRE(planner::holds_nemo_overrides(exported.script));
  const ImportedJob job = planner::import_overrides(exported.script, "x.sh");
  CHECK(job.format == planner::JobFormat::nemo);
  CHECK_MESSAGE(job.left_out.empty(), (job.left_out.empty() ? "" : job.left_out.front()));
  round_trips::check_same(shortened(in), scenario_of(job, cluster), plan);
}

constexpr const char* overrides =
    "torchrun --nproc_per_node=8 --nnodes=2 scripts/training/run_recipe.py "
    "--recipe llama3_8b_pretrain_config \\\n"
    "  'model.tensor_model_parallel_size=2' +model.sequence_parallel=True \\\n"
    "  train.global_batch_size=64 train.micro_batch_size=1 dataset.seq_length=8192 \\\n"
    "  mixed_precision=bf16_with_fp8_current_scaling_mixed optimizer.lr=1e-4 \\\n"
    "  model.recompute_granularity=selective 'model.recompute_modules=[core_attn,mlp]' \\\n"
    "  model.moe_router_fusion=true\n";

}  // namespace

TEST_CASE("overrides of a recipe become a scenario; the model is the recipe's") {
  ImportedJob job = planner::import_overrides(overrides, "x.sh");
  CHECK(job.left_out.empty());
  REQUIRE(job.missing.size() == 2);
  CHECK(job.missing[0].key == "cluster.base");
  CHECK(job.missing[1].key == "model.base");
  CHECK(fixtures::contains(job.missing[1].remedy, "recipe llama3_8b_pretrain_config"));
  planner::set_key(job, "model.base=llama-3-8b", {});
  const Scenario s = scenario_of(job, "dgx-h100");
  const ParallelPlan plan = resolve_plan(s);
  CHECK(s.training.precision == costmodel::Precision::fp8);
  CHECK(s.training.sequence == 8192);
  CHECK(plan.tp == 2);
  CHECK(plan.dp == 8);
  CHECK(plan.sequence_parallel);
  CHECK(plan.recompute.modules != 0);
}

TEST_CASE("Python that sets fields is read too") {
  const ImportedJob job = planner::import_overrides(
      "cfg = recipes.llama3_70b_pretrain_config()\n"
      "cfg.model.tensor_model_parallel_size = 4  # of 8\n"
      "cfg.model.sequence_parallel = True\n"
      "cfg.train.micro_batch_size = 2\n"
      "cfg.train.global_batch_size = 128\n",
      "x.py");
  const costmodel::Value* plan = job.scenario.find("plan");
  REQUIRE(plan != nullptr);
  CHECK(plan->find("tp")->text == "4");
  CHECK(plan->find("micro_batch")->text == "2");
  CHECK(fixtures::contains(job.missing.back().remedy, "llama3_70b_pretrain_config"));
  const costmodel::Value* training = job.scenario.find("training");
  CHECK(training->find("stack")->find("base")->text == "megatron-bridge");
  CHECK(training->find("loss")->text == "unfused");
}

TEST_CASE(
    "a benchmark's precision is that of the function that it calls; its base recipe is noted") {
  const auto training_of = [](const std::string& precision) {
    const ImportedJob job = planner::import_overrides(
        "cfg = llama31_405b_pretrain_config()\n"
        "cfg.mixed_precision = " +
            precision +
            "\ncfg.model.tensor_model_parallel_size = 4\n"
            "cfg.model.sequence_parallel = True\n"
            "_llama_benchmark_common(cfg)\n",
        "x.py");
    CHECK(job.scenario.find("plan")->find("zero")->text == "1");
    const std::string& note = job.notes.back();
    CHECK_MESSAGE(fixtures::contains(note, "llama31_405b_pretrain_config"), note);
    CHECK_MESSAGE(
        fixtures::contains(
            note, "of plan.pp, plan.cp, plan.micro_batch, plan.recompute, training.overlap"),
        note);
    CHECK_FALSE(fixtures::contains(note, "plan.zero"));
    CHECK(job.notes.size() == 1);
    return *job.scenario.find("training");
  };
  const std::pair<const char*, const char*> precisions[] = {
      {"_perf_precision(\"bf16\")", "bf16"},   {"_perf_precision(\"fp8_cs\")", "fp8"},
      {"_perf_precision(\"fp8_ds\")", "fp8"},  {"_perf_precision(\"fp8_mx\")", "mxfp8"},
      {"_perf_precision(\"nvfp4\")", "nvfp4"}, {"_gpt_oss_20b_fp8mx_precision()", "mxfp8"}};
  for (const auto& [call, precision] : precisions) {
    const costmodel::Value training = training_of(call);
    CHECK_MESSAGE(training.find("precision")->text == precision, call);
    CHECK_MESSAGE(training.find("gradient_precision")->text == "bf16", call);
  }
  CHECK(training_of("MixedPrecisionConfig(bf16=True, grad_reduce_in_fp32=False)")
            .find("gradient_precision")
            ->text == "bf16");
  CHECK(training_of("bf16_with_mxfp8_mixed()").find("gradient_precision")->text == "fp32");
  CHECK(training_of("_perf_precision(\"fp8_mx\")").find("parameter_gather_precision") != nullptr);
  CHECK(training_of("_gpt_oss_20b_fp8mx_precision()").find("parameter_gather_precision") ==
        nullptr);
  // Which calls one of another file, with another batch.
  const ImportedJob other = planner::import_overrides(
      "cfg = _with_global_batch_size(qwen3_pretrain_8gpu_b200_fp8mx_config(), 512)\n"
      "cfg.model.pipeline_model_parallel_size = 1\n",
      "x.py");
  CHECK(other.scenario.find("training")->find("global_batch")->text == "512");
  CHECK(other.scenario.find("training")->find("precision")->text == "mxfp8");
  CHECK(other.recipes.front() == "qwen3_pretrain_8gpu_b200_fp8mx_config");
  // What every recipe sets counts less than one of the same file, which stands before its call.
  const ImportedJob own = planner::import_overrides(
      "cfg.ddp.overlap_grad_reduce = False\ncfg = x_pretrain_config()\n", "x.py");
  CHECK(own.scenario.find("training")->find("overlap")->find("overlap_grad_reduce")->text ==
        "false");
  const ImportedJob unknown = planner::import_overrides(
      "cfg = x_pretrain_config()\ncfg.mixed_precision = my_precision(3)\n"
      "cfg.train.micro_batch_size = 1\n",
      "x.py");
  CHECK(unknown.left_out.front() == "mixed_precision = my_precision(3): it is computed");
  CHECK(fixtures::contains(unknown.notes.front(), "the precision is computed"));
}

TEST_CASE("a plan comes back upon the stack that priced it, Megatron-Bridge's own or another") {
  for (const char* stack : {"megatron-bridge", "megatron-core-2026", "nemo-2025",
                            "{base: megatron-core-2025, fused_rotary: false}"}) {
    const Scenario in =
        scenarios::read(std::string("model: qwen3-30b-a3b\ncluster: {base: dgx-h100, devices: 16}\n"
                                    "training: {global_batch: 64, sequence: 4096, stack: ") +
                        stack + "}\nplan: {ep: 8, dp: 16}\n");
    const auto exported = planner::export_bridge(in, resolve_plan(in));
    const Scenario out =
        scenario_of(planner::import_overrides(exported.script, "x.sh"), "dgx-h100");
    CHECK_MESSAGE(in.training.stack.title == out.training.stack.title, stack);
    CHECK_MESSAGE(in.training.stack.kernels.fused_router == out.training.stack.kernels.fused_router,
                  stack);
    CHECK_MESSAGE(in.training.stack.kernels.fused_rotary == out.training.stack.kernels.fused_rotary,
                  stack);
    CHECK_MESSAGE(in.training.stack.kernels.loss == out.training.stack.kernels.loss, stack);
  }
}

TEST_CASE("the adapters of a fine-tuning, on the stack that has them") {
  const auto tuning_of = [](const ImportedJob& job) {
    return *job.scenario.find("training")->find("fine_tuning");
  };
  const std::string sizes =
      "cfg.model.num_layers = 2\ncfg.model.hidden_size = 64\ncfg.model.gated_linear_unit = True\n";
  const ImportedJob job = planner::import_overrides(
      sizes +
          "cfg.peft = LoRA(target_modules=[\"linear_qkv\", \"linear_fc1\"], dim=8, alpha=16, "
          "dropout=0.1)\n",
      "x.py");
  const auto tuning = tuning_of(job);
  CHECK(tuning.find("method")->text == "lora");
  CHECK(tuning.find("rank")->text == "8");
  CHECK(tuning.find("alpha")->text == "16");
  CHECK(tuning.find("dropout")->text == "0.1");
  std::string targets;
  for (const auto& item : tuning.find("targets")->items) targets += item.text + " ";
  CHECK(targets == "q k v gate up ");
  const auto* training = job.scenario.find("training");
  CHECK(training->find("stack")->find("base")->text == "megatron-bridge");
  CHECK(training->find("loss") != nullptr);  // that of Megatron-LM's stack is another one
  const auto usual = tuning_of(planner::import_overrides(sizes + "cfg.peft = LoRA()\n", "x.py"));
  CHECK(usual.find("rank")->text == "32");
  CHECK(usual.find("targets") == nullptr);
}

TEST_CASE("adapters by a name, by a function of Bridge's, by a recipe and by its mode") {
  const auto of = [](const std::string& text, const char* file = "x.py") {
    const auto job = planner::import_overrides("cfg.model.num_layers = 2\n" + text, file);
    const auto* tuning = job.scenario.find("training")->find("fine_tuning");
    if (tuning == nullptr) return std::string("none");
    return tuning->find("rank")->text + " " + tuning->find("alpha")->text +
           (job.left_out.empty() ? "" : " " + job.left_out.front());
  };
  const std::string named =
      "    peft_cfg = default_peft_config(\"lora\")\n    cfg.peft = peft_cfg\n"
      "    peft_cfg.dim = 8\n    peft_cfg.alpha = 16\n";
  CHECK(of("cfg = _peft_common()\n" + named) == "8 16");
  CHECK(of("    mine = LoRA(dim=4)\n    mine.alpha = 8\n    cfg.peft = mine\n") == "4 8");
  CHECK(of("cfg = _peft_common()\n") == "32 32");
  CHECK(of("cfg = _peft_common()\ncfg.peft = None\n") == "none");
  CHECK(of("cfg.peft = default_peft_config(\"dora\")\n") == "32 64 peft dora: priced as lora");
  // Each object has its own settings.
  CHECK(of("cfg.peft = LoRA(dim=4)\ncfg.peft = LoRA(alpha=8)\n") == "32 8");
  CHECK(of("cfg = _peft_common()\ncfg.peft = scheme\n") == "32 32 peft = scheme: it is computed");
  CHECK(of("cfg.peft = make()\ncfg.peft.dim = 4\n") == "4 32 peft = make(): it is computed");
  const auto run = [&](const std::string& arguments) {
    return of("run_recipe.py " + arguments + " model.hidden_size=8\n", "x.sh");
  };
  CHECK(run("--recipe llama3_8b_peft_1gpu_config") == "32 32");
  CHECK(run("--model llama3_8b --mode lora") == "32 32");
  CHECK(run("--model llama3_8b --mode sft") == "none");
}

TEST_CASE(
    "the dispatcher that a function of Bridge's applies, by name or by the field that has it") {
  const auto dispatcher = [](const std::string& text) {
    const auto job = planner::import_overrides(
        "cfg.model.num_moe_experts = 8\ncfg.model.moe_token_dispatcher_type = \"alltoall\"\n" +
            text,
        "x.py");
    return job.scenario.find("plan")->find("dispatcher")->text;
  };
  const std::string field = "cfg.model.moe_flex_dispatcher_backend = \"hybridep\"\n",
                    apply = "apply_flex_dispatcher_backend(cfg.model, ";
  CHECK(dispatcher(field) == "alltoall");
  CHECK(dispatcher(field + apply + "cfg.model.moe_flex_dispatcher_backend)\n") == "hybridep");
  CHECK(dispatcher(apply + "moe_flex_dispatcher_backend=\"deepep\")\n") == "deepep");
  CHECK(dispatcher(apply + "None)\n") == "alltoall");
}

TEST_CASE("a word without a value in the script is named, not dropped") {
  const auto job =
      planner::import_overrides("run.py model.num_layers=2 model.sequence_parallel=$SP\n", "x.sh");
  CHECK(job.left_out ==
        std::vector<std::string>{"model.sequence_parallel: $SP has no value in the script"});
  CHECK_THROWS_WITH_AS(
      planner::import_overrides("run.py model.tensor_model_parallel_size=$TP\n", "x.sh"),
      doctest::Contains("the script does not"), costmodel::ConfigError);
}

TEST_CASE("a switch that is neither true nor false is refused where it stands") {
  CHECK_THROWS_WITH_AS(
      planner::import_overrides("run.py \\\n model.sequence_parallel=yes\n", "x.sh"),
      "x.sh:2:2: 'model.sequence_parallel=yes' is neither true nor false; write true or false",
      costmodel::ConfigError);
}

namespace {

constexpr int plans = sanitized ? 15 : 200;

}  // namespace

TEST_CASE("random plans that Megatron-Bridge takes come back from their scripts") {
  const auto accepts = [](const Scenario& in, const ParallelPlan& plan) {
    return planner::megatron_violations(in, plan).empty();
  };
  CHECK(round_trips::of_random_plans(plans, accepts, check_bridge) == plans);
}

TEST_CASE("random plans that NeMo 2.x takes come back from their scripts") {
  const auto accepts = [](const Scenario& in, const ParallelPlan& plan) {
    // Of which NeMo has no field.
    const bool linear = in.model.rope_scaling == costmodel::RopeScaling::linear;
    const bool llama3 = in.model.rope_scaling == costmodel::RopeScaling::llama3;
    return !linear && !llama3 && planner::nemo_violations(in, plan).empty();
  };
  CHECK(round_trips::of_random_plans(plans, accepts, check_nemo) == plans);
}

}  // namespace import_overrides_test
