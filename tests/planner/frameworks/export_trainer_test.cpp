// Plans in the words of axolotl, LLaMA-Factory and accelerate with TRL, which come back the same.
#include "planner/frameworks/export_trainer.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <array>
#include <string>

#include "costmodel/plan/parallel_plan.hpp"
#include "planner/frameworks/import_trainer.hpp"
#include "planner/frameworks/trainer_words.hpp"
#include "tests/costmodel/support/scenarios.hpp"

namespace export_trainer_test {

using costmodel::Scenario;
using planner::TrainerTarget;

namespace {

constexpr std::array all{TrainerTarget::axolotl, TrainerTarget::llama_factory,
                         TrainerTarget::accelerate};

Scenario scenario(const std::string& training, const std::string& plan) {
  return scenarios::read(
      "model: llama-3.1-8b\ncluster: {base: dgx-h100, devices: 16}\ntraining: {global_batch: 64, "
      "sequence: 2048, " +
      training + "}\nplan: {" + plan + "}\n");
}

void check_back(const Scenario& in, TrainerTarget target) {
  const auto plan = costmodel::resolve_plan(in);
  const std::string script = planner::export_trainer(in, plan, target).script;
  CAPTURE(script);
  const auto format = planner::trainer_format(script);
  REQUIRE(format);
  planner::ImportedJob job = planner::import_trainer(script, "x.sh", *format);
  CHECK(job.left_out.empty());
  CHECK(job.recipes == std::vector<std::string>{"Llama-3.1-8B"});
  planner::set_cluster(job, "dgx-h100");
  planner::set_key(job, "model=llama-3.1-8b", {});
  CHECK(job.missing.empty());
  const Scenario out = scenarios::read(to_yaml(job));
  const auto back = costmodel::resolve_plan(out);
  CHECK(out.cluster.devices == in.cluster.devices);
  CHECK(back.tp == plan.tp);
  CHECK(back.cp == plan.cp);
  CHECK(back.dp == plan.dp);
  CHECK(back.dp_replicate == plan.dp_replicate);
  CHECK(back.zero == plan.zero);
  CHECK(back.micro_batch == plan.micro_batch);
  CHECK(back.recompute.granularity == plan.recompute.granularity);
  CHECK(back.offload.parameters == plan.offload.parameters);
  const auto &a = in.training, &b = out.training;
  CHECK(a.global_batch == b.global_batch);
  CHECK(a.sequence == b.sequence);
  CHECK(a.precision == b.precision);
  CHECK(a.optimizer == b.optimizer);
  CHECK(a.overlap.compile == b.overlap.compile);
  CHECK(a.fine_tuning.method == b.fine_tuning.method);
  CHECK(a.fine_tuning.rank == b.fine_tuning.rank);
  CHECK(a.fine_tuning.alpha == b.fine_tuning.alpha);
  CHECK(a.fine_tuning.dropout == b.fine_tuning.dropout);
  CHECK(a.fine_tuning.targets == b.fine_tuning.targets);
  CHECK(a.fine_tuning.double_quantization == b.fine_tuning.double_quantization);
}

}  // namespace

TEST_CASE("plans come back from each program's words") {
  const std::string peft = "stack: peft, ";
  for (const TrainerTarget target : all) {
    check_back(scenario(peft + "fine_tuning: {method: full}",
                        "dp: 16, zero: 3, micro_batch: 2, recompute: full"),
               target);
    check_back(scenario(peft + "optimizer: adam-8bit, overlap: {compile: true}, "
                               "fine_tuning: {method: full}",
                        "dp: 16, zero: 2, micro_batch: 4"),
               target);
    check_back(scenario(peft + "precision: fp16, fine_tuning: {method: lora, rank: 4, alpha: 8, "
                               "targets: [q, v], dropout: 0.1}",
                        "dp: 16, zero: 0, micro_batch: 1"),
               target);
    check_back(scenario(peft + "fine_tuning: {method: qlora}",
                        "dp: 16, zero: 3, micro_batch: 1, offload: parameters"),
               target);
    check_back(scenario(peft + "fine_tuning: {method: qlora, double_quantization: false}",
                        "dp: 16, zero: 3, micro_batch: 1"),
               target);
  }
  const std::string sharded =
      "stack: {base: peft, data_parallel_only: false, context_parallel: true}, fine_tuning: "
      "{method: full}";
  for (const TrainerTarget target : {TrainerTarget::axolotl, TrainerTarget::accelerate}) {
    check_back(scenario(sharded, "dp: 4, tp: 2, cp: 2, zero: 3, dp_replicate: 2"), target);
  }
}

TEST_CASE("what a program has no words for is refused with its key") {
  const auto refused = [](const std::string& training, const std::string& plan,
                          TrainerTarget target) {
    const Scenario s = scenario(training, plan);
    std::string keys;
    for (const auto& violation : planner::trainer_violations(s, costmodel::resolve_plan(s), target))
      keys += violation.key + " ";
    return keys;
  };
  const std::string sharded = "stack: {base: peft, data_parallel_only: false}";
  CHECK(refused("stack: megatron-core-2026", "pp: 2, dp: 8", TrainerTarget::axolotl) == "pp ");
  CHECK(refused(sharded, "tp: 2, dp: 8, zero: 3", TrainerTarget::llama_factory) == "tp ");
  CHECK(refused(sharded, "dp: 16, zero: 1", TrainerTarget::accelerate) == "zero ");
  CHECK(refused("stack: peft, optimizer: muon", "dp: 16", TrainerTarget::axolotl) == "optimizer ");
  CHECK(refused("stack: peft", "dp: 16, zero: 2, offload: optimizer", TrainerTarget::axolotl) ==
        "offload ");
  Scenario experts = scenario("stack: peft", "dp: 16");
  experts.model = scenarios::read(
                      "model: mixtral-8x7b\ncluster: {base: dgx-h100, devices: 8}\n"
                      "training: {global_batch: 8, sequence: 512}\n")
                      .model;
  experts.training.fine_tuning.method = costmodel::FineTuningMethod::lora;
  experts.training.fine_tuning.targets = costmodel::attention_targets;
  const auto violations = [&] {
    return planner::trainer_violations(experts, costmodel::resolve_plan(experts),
                                       TrainerTarget::axolotl);
  };
  CHECK(violations().empty());
  experts.training.fine_tuning.targets |= 1U << static_cast<unsigned>(costmodel::AdapterTarget::up);
  REQUIRE(violations().size() == 1);
  CHECK(violations().front().key == "fine_tuning");
  CHECK(refused("stack: peft", "dp: 16, zero: 2, offload: optimizer", TrainerTarget::llama_factory)
            .empty());
  CHECK(refused("stack: deepspeed", "dp: 16, zero: 3, offload: optimizer",
                TrainerTarget::llama_factory) == "offload ");
  CHECK(refused("stack: {base: peft, data_parallel_only: false}, loss: flash",
                "tp: 2, dp: 8, zero: 3, sequence_parallel: false",
                TrainerTarget::axolotl) == "training.loss ");
}

TEST_CASE("the loss that keeps 16-bit logits is Liger's; a ring that stands for it is named") {
  const auto text = [](const std::string& training, const char* plan, TrainerTarget target) {
    const Scenario s = scenario(training, plan);
    const auto out = planner::export_trainer(s, costmodel::resolve_plan(s), target);
    return out.script;
  };
  const auto has = [](const std::string& in, const char* part) {
    return in.find(part) != std::string::npos;
  };
  const std::pair<TrainerTarget, const char*> words[] = {
      {TrainerTarget::axolotl, "\nliger_fused_linear_cross_entropy: true\n"},
      {TrainerTarget::llama_factory, "\nenable_liger_kernel: true\n"},
      {TrainerTarget::accelerate, "--use_liger_kernel true"}};
  for (const auto& [target, word] : words) {
    CHECK_MESSAGE(has(text("stack: peft, loss: flash", "dp: 16", target), word), word);
    CHECK_FALSE(has(text("stack: peft", "dp: 16", target), "iger_"));
  }
  const std::string context =
      "stack: {base: peft, data_parallel_only: false, context_parallel: true}";
  const auto ring = [&](const char* exchange) {
    const std::string plan = std::string("cp: 2, dp: 8, zero: 3, cp_comm: ") + exchange;
    return has(text(context, plan.c_str(), TrainerTarget::axolotl), "around a ring");
  };
  CHECK(ring("a2a"));
  CHECK_FALSE(ring("p2p"));
}

TEST_CASE("TRL loads a base for adapters in the precision that was priced") {
  const auto script = [](const std::string& training, const std::string& plan) {
    const Scenario s = scenario("stack: peft, " + training, plan);
    return planner::export_trainer(s, costmodel::resolve_plan(s), TrainerTarget::accelerate).script;
  };
  const auto has = [](const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
  };
  CHECK(has(script("fine_tuning: {method: lora}", "dp: 16"), "--dtype bfloat16"));
  CHECK(has(script("precision: fp16, fine_tuning: {method: lora}", "dp: 16"), "--dtype float16"));
  CHECK_FALSE(has(script("fine_tuning: {method: full}", "dp: 16, zero: 3"), "--dtype"));
  const std::string sharded = script("fine_tuning: {method: qlora}", "dp: 16, zero: 3");
  CHECK(has(sharded, "--bnb_4bit_quant_storage bfloat16"));
  CHECK_FALSE(has(script("fine_tuning: {method: qlora}", "dp: 16"), "quant_storage"));
}

TEST_CASE("an encoder with a decoder is none of these programs'") {
  const Scenario s = scenarios::read(
      "model: t5-3b\ncluster: {base: dgx-h100, devices: 8}\n"
      "training: {global_batch: 8, sequence: 512, stack: peft}\nplan: {zero: 3}\n");
  for (const TrainerTarget target : all) {
    const auto found = planner::trainer_violations(s, costmodel::resolve_plan(s), target);
    REQUIRE(!found.empty());
    CHECK(found.front().key == "model");
  }
}

TEST_CASE("attention by a kernel that device and model have") {
  const auto script_of = [](const char* model, const char* cluster, const char* precision,
                            TrainerTarget target) {
    const Scenario s = scenarios::read(fmt::format(
        "model: {}\ncluster: {}\ntraining: {{global_batch: 8, sequence: 2048, precision: {}, "
        "stack: "
        "peft, fine_tuning: {{method: lora, targets: attention}}}}\nplan: {{micro_batch: 1}}\n",
        model, cluster, precision));
    return planner::export_trainer(s, costmodel::resolve_plan(s), target).script;
  };
  const char* const ampere = "{base: dgx-a100, devices: 1}";
  const char* const volta = "{device: v100-sxm2-32gb, devices: 1}";
  const auto has = [](const std::string& script, const char* line) {
    return script.find(line) != std::string::npos;
  };
  CHECK(has(script_of("llama-3.2-1b", ampere, "bf16", TrainerTarget::axolotl),
            "attn_implementation: flash_attention_2"));
  CHECK(has(script_of("llama-3.2-1b", volta, "fp16", TrainerTarget::axolotl),
            "attn_implementation: sdpa"));
  CHECK(has(script_of("llama-3.2-1b", volta, "fp16", TrainerTarget::llama_factory),
            "flash_attn: sdpa"));
  // FlashAttention 2 would drop the sinks.
  CHECK(has(script_of("gpt-oss-20b", ampere, "bf16", TrainerTarget::axolotl),
            "attn_implementation: kernels-community/vllm-flash-attn3"));
  CHECK(has(script_of("gpt-oss-20b", ampere, "bf16", TrainerTarget::llama_factory),
            "flash_attn: disabled"));
}

}  // namespace export_trainer_test
