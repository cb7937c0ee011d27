// The `fine_tuning` map: what is left out, and what is refused, where and with what remedy.
#include "costmodel/scenario/fine_tuning_reader.hpp"

#include <doctest/doctest.h>

#include <string>

#include "tests/costmodel/support/scenarios.hpp"

namespace fine_tuning_reader_test {

using namespace costmodel;
using fixtures::contains;

namespace {

Scenario read(const std::string& tuning, const std::string& training = "stack: peft",
              const std::string& model = "llama-3-8b") {
  return scenarios::read("model: " + model +
                         "\ncluster: {base: dgx-h100, devices: 8}\n"
                         "training: {global_batch: 8, sequence: 512, " +
                         training + ", fine_tuning: " + tuning + "}\n");
}

std::string fault(const std::string& tuning, const std::string& training = "stack: peft",
                  const std::string& model = "llama-3-8b") {
  return fixtures::config_error([&] { read(tuning, training, model); });
}

}  // namespace

TEST_CASE("what is not written is the method's usual") {
  const FineTuning lora = read("{method: lora}").training.fine_tuning;
  CHECK(lora.rank == 16);
  CHECK(lora.alpha == 32);
  CHECK(lora.dropout == 0);
  CHECK(lora.targets == 0b1111111);
  CHECK(lora.base == BasePrecision::bf16);
  CHECK(lora.fp32_adapters);  // PEFT's
  const FineTuning qlora = read("{method: qlora}").training.fine_tuning;
  CHECK(qlora.base == BasePrecision::nf4);
  CHECK(qlora.double_quantization);
  CHECK_FALSE(read("{method: lora}", "stack: megatron-bridge").training.fine_tuning.fp32_adapters);
  CHECK(read("{method: lora}", "stack: peft", "gpt3-1.3b").training.fine_tuning.targets ==
        0b1101111);  // no gate
}

TEST_CASE("adapters in 16 bits have gradients of 16, unless a scenario says otherwise") {
  const auto gradient = [](const std::string& tuning, const std::string& more = "") {
    return read(tuning, "stack: peft" + more).training.gradient_precision;
  };
  CHECK(gradient("{method: lora}") == Precision::fp32);
  CHECK(gradient("{method: lora, adapter_precision: bf16}") == Precision::bf16);
  CHECK(gradient("{method: lora, adapter_precision: bf16}", ", gradient_precision: fp32") ==
        Precision::fp32);
}

TEST_CASE("what does not go together is refused with a remedy") {
  CHECK(contains(fault("{method: qlora, base_precision: bf16}"), "method: lora"));
  CHECK(contains(fault("{method: lora, base_precision: nf4}"), "set method: qlora"));
  CHECK(contains(fault("{method: lora, double_quantization: false}"), "base_precision: nf4"));
  CHECK(contains(fault("{method: full, rank: 8}"), "rank is of adapters"));
  CHECK(contains(fault("{method: lora, rank: 1025}"), "above the 1024 rows or columns of k"));
  CHECK(contains(fault("{method: lora, targets: [gate]}", "stack: peft", "gpt3-1.3b"),
                 "the model's MLP has no gate"));
  CHECK(contains(fault("{method: lora, targets: [q, z]}"), "'z' is no projection"));
  CHECK(contains(fault("{method: lora, targets: []}"), "list of projections"));
  CHECK(contains(fault("{method: lora}", "stack: megatron-bridge", "mixtral-8x7b"),
                 "set targets: attention"));
  CHECK(contains(fault("{method: lora, targets: attention}", "stack: peft", "deepseek-v2"),
                 "adapters of latent attention are not modelled"));
  CHECK(contains(fault("{method: lora, targets: [q]}", "stack: peft", "deepseek-v2"),
                 "set targets: [o, gate, up, down]"));
  // Where experts have none either, the remedy is one that works.
  CHECK(
      contains(fault("{method: lora, targets: [o, gate, up, down]}", "stack: peft", "deepseek-v2"),
               "set targets: [o]"));
  CHECK(fault("{method: lora, targets: [o]}", "stack: peft", "deepseek-v2").empty());
  CHECK(contains(fault("{method: lora}", "stack: peft", "qwen3.5-27b"),
                 "set targets: [q, k, v, o, gate, up, down]"));
  CHECK(contains(fault("{method: lora, targets: [q]}", "stack: peft", "mamba-130m"),
                 "layers without attention or MLP"));
  CHECK(contains(fault("{method: lora}", "stack: peft, precision: fp32"), "precision: bf16"));
  CHECK(contains(fault("{method: qlora}", "stack: peft, precision: fp8"), "base_precision: fp8"));
  CHECK(contains(fault("{method: lora}", "stack: megatron-2021"), "training.stack: peft"));
  CHECK(contains(fault("{method: qlora}", "stack: megatron-bridge"), "no base of 4 bits"));
  CHECK(contains(fault("{method: lora, adapter_precision: fp32}", "stack: megatron-bridge"),
                 "keeps adapters in bf16"));
  CHECK(contains(fault("{method: loar}"), "did you mean 'lora'?"));
  CHECK(contains(fault("{method: lora, rnk: 8}"), "did you mean 'rank'?"));
}

TEST_CASE("a plan of adapters: ranks that tensor ranks divide, 4 bits on FSDP alone") {
  const auto broken = [](const Scenario& s, int tp, int pp) {
    ParallelPlan plan;
    plan.tp = tp;
    plan.pp = pp;
    plan.dp = 8 / tp / pp;
    const auto found = violations(plan, s.model, s.cluster, s.training);
    return found.empty() ? std::string() : found.front().key;
  };
  const Scenario lora = read("{method: lora, rank: 4}", "stack: megatron-bridge");
  CHECK(broken(lora, 4, 2).empty());
  CHECK(broken(lora, 8, 1) == "tp");
  const Scenario qlora = read("{method: qlora}");
  CHECK(broken(qlora, 1, 1).empty());
  CHECK(broken(qlora, 2, 1) == "tp");
  CHECK(broken(qlora, 1, 2) == "pp");
}

}  // namespace fine_tuning_reader_test
