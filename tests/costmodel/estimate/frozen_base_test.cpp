// Memory and traffic of a plan whose base is frozen.
#include <doctest/doctest.h>

#include <string>

#include "costmodel/estimate/evaluator.hpp"
#include "costmodel/model/parameter_count.hpp"
#include "tests/costmodel/support/scenarios.hpp"

namespace frozen_base_test {

using namespace costmodel;

namespace {

Scenario tuned(const std::string& tuning, const std::string& stack,
               const std::string& model = "llama-3-8b") {
  return scenarios::read("model: " + model +
                         "\ncluster: {base: dgx-h100, devices: 8}\n"
                         "training: {global_batch: 32, sequence: 1024, stack: " +
                         stack + ", fine_tuning: {" + tuning + "}}\n");
}

ParallelPlan data_parallel(int zero) {
  ParallelPlan plan;
  plan.dp = 8;
  plan.zero = zero;
  return plan;
}

Estimate estimated(const Scenario& s, const ParallelPlan& plan) {
  return Evaluator(s.model, s.cluster, s.training).estimate(plan);
}

// Llama 3 8B, rank 16 on all: of seven projections, or of the four products of a layer.
constexpr double adapters = 41'943'040, joint_adapters = 35'651'584;

}  // namespace

TEST_CASE("the base takes its bytes alone, adapters all of theirs") {
  const Scenario s = tuned("method: lora", "megatron-bridge");
  const StageMemory memory = estimated(s, data_parallel(0)).memory.front();
  const double base = parameter_count(s.model) * 2;
  const double padding = (padded_vocab(s.model.vocab, 1) - s.model.vocab) * 4096.0 * 2 * 2;
  CHECK(memory.weights.value == base + padding + 2 * joint_adapters);
  CHECK(memory.gradients.value == 2 * joint_adapters);
  CHECK(memory.optimizer.value == 12 * joint_adapters);
}

TEST_CASE("PEFT trains adapters in fp32 without a copy, or as they are cast") {
  const auto states = [](const std::string& more) {
    const Scenario s = tuned("method: qlora, " + more, "peft");
    const StageMemory m = estimated(s, data_parallel(0)).memory.front();
    return (m.gradients + m.optimizer).value / adapters;
  };
  CHECK(states("rank: 16") == 4 + 8);
  CHECK(states("adapter_precision: bf16") == 2 + 8);
}

TEST_CASE("nf4: projections in 4.127 bits, tables, norms and the output projection in 16") {
  const Scenario s = tuned("method: qlora, adapter_precision: bf16", "peft");
  const double h = 4096, layers = 32;
  const double projections = layers * (h * (h + 2048) + h * h + 3 * h * 14336);
  const double vocab = static_cast<double>(padded_vocab(s.model.vocab, 1));
  const double rest = 2 * vocab * h + (2 * layers + 1) * h;
  CHECK(estimated(s, data_parallel(0)).memory.front().weights.value ==
        doctest::Approx(projections * (4 + 0.125 + 32.0 / (64 * 256)) / 8 + rest * 2 + 2 * adapters)
            .epsilon(1e-12));
}

TEST_CASE("gradients of adapters alone are reduced; ZeRO-3 gathers the base as it is stored") {
  for (const char* method : {"lora", "qlora"}) {
    const Scenario s = tuned("method: " + std::string(method) + ", rank: 16", "peft");
    const Estimate whole = estimated(s, data_parallel(0)), cut = estimated(s, data_parallel(3));
    CHECK(whole.traffic.all_reduce.value == doctest::Approx(2 * 7.0 / 8 * 4 * adapters));
    CHECK(whole.traffic.all_gather.value == 0);
    const double stored = whole.memory.front().weights.value - 4 * adapters;
    const double m = static_cast<double>(cut.micro_batches);
    CHECK(cut.traffic.all_gather.value == doctest::Approx(2 * m * 7 / 8 * (stored + 2 * adapters)));
    CHECK(cut.traffic.reduce_scatter.value == doctest::Approx(m * 7 / 8 * 4 * adapters));
    CHECK(cut.memory.front().weights.value == doctest::Approx(stored / 8 + 4 * adapters / 8));
  }
}

TEST_CASE("one table serves a tied model whose base is frozen") {
  const Scenario s = tuned("method: lora", "megatron-bridge", "llama-3.2-1b");
  REQUIRE(s.model.tie_embeddings);
  const Estimate e = estimated(s, data_parallel(0));
  const double padding =
      static_cast<double>(padded_vocab(s.model.vocab, 1) - s.model.vocab) * 2048 * 2;
  CHECK(e.memory.front().weights.value ==
        parameter_count(s.model) * 2 + padding + 2 * e.trained_parameters);
}

TEST_CASE("the frozen base costs less time and memory than training it") {
  const auto time = [](const std::string& method) {
    return estimated(tuned(method, "megatron-bridge"), data_parallel(0));
  };
  const Estimate lora = time("method: lora, rank: 8, targets: [q, v]"), full = time("method: full");
  CHECK(lora.iteration < full.iteration);
  CHECK(lora.peak < full.peak);
  CHECK(lora.model_flops.value < full.model_flops.value);
}

TEST_CASE("the paper's claim: 65B fits in 48 GB by QLoRA, and no base of 16 bits does") {
  const auto peak = [](const std::string& assignment) {
    std::vector<std::string> set;
    if (!assignment.empty()) set.push_back(assignment);
    const Scenario s = load_scenario(scenario_file("llama-65b-qlora-48gb", fixtures::configs()),
                                     fixtures::configs(), set);
    const Estimate e = Evaluator(s.model, s.cluster, s.training).estimate(resolve_plan(s));
    return e.peak / e.capacity;
  };
  CHECK(peak("") < 1);
  CHECK(peak("training.fine_tuning={method: lora, rank: 64}") > 2);
  CHECK(peak("training.fine_tuning={method: qlora, base_precision: fp8, rank: 64}") > 1);
  CHECK(peak("training.fine_tuning.double_quantization=false") > 1);
}

}  // namespace frozen_base_test
