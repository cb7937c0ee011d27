// Adapters' parameters against published counts.
#include "costmodel/plan/trained_parameters.hpp"

#include <doctest/doctest.h>

#include "costmodel/model/parameter_count.hpp"
#include "tests/costmodel/support/scenarios.hpp"

namespace trained_parameters_test {

using namespace costmodel;

namespace {

Scenario tuned(const std::string& model, const std::string& tuning,
               const std::string& stack = "peft") {
  return scenarios::read("model: " + model +
                         "\ncluster: {base: dgx-h100, devices: 8}\n"
                         "training: {global_batch: 8, sequence: 512, stack: " +
                         stack + ", fine_tuning: {" + tuning + "}}\n");
}

double trained(const std::string& model, const std::string& tuning) {
  const Scenario s = tuned(model, tuning);
  return trained_parameters(s.model, s.training.fine_tuning);
}

}  // namespace

TEST_CASE("trainable parameters as PEFT's print_trainable_parameters tells them") {
  CHECK(trained("llama-2-7b", "method: lora, rank: 8, targets: [q, v]") == 4'194'304);
  CHECK(trained("llama-3-8b", "method: lora, rank: 16, targets: all-linear") == 41'943'040);
  CHECK(trained("llama-3-8b", "method: qlora, rank: 16") == 41'943'040);
  // 32 layers of 16 ((4096 + 4096) + 2 (4096 + 1024) + (4096 + 4096)).
  CHECK(trained("llama-3-8b", "method: lora, targets: attention") == 13'631'488);
}

TEST_CASE("Megatron-Bridge's LoRA has one adapter for each of four products of a layer") {
  const auto bridge = [](const std::string& tuning) {
    const Scenario s = tuned("llama-3-8b", tuning, "megatron-bridge");
    return trained_parameters(s.model, s.training.fine_tuning);
  };
  CHECK(bridge("method: lora, rank: 16") ==
        32 * 16 * ((4096 + 6144) + (4096 + 4096) + (4096 + 2 * 14336) + (14336 + 4096)));
  // CanonicalLoRA, of a part of a product.
  CHECK(bridge("method: lora, rank: 8, targets: [q, v]") == 32 * 8 * (4096 + 4096 + 4096 + 1024));
}

TEST_CASE("each expert has adapters of its own, a dense layer and shared experts theirs") {
  // Qwen3 30B: 48 layers of q and o of 4096, k and v of 512, and 128 experts of 768.
  const double attention = (2048 + 4096) * 2 + (2048 + 512) * 2, expert = 3 * (2048 + 768);
  const auto of_modules = [](const std::string& model, const std::string& tuning) {
    const Scenario s = tuned(model, tuning, "{base: peft, adapters: {experts: true, source: x}}");
    return trained_parameters(s.model, s.training.fine_tuning);
  };
  CHECK(of_modules("qwen3-30b-a3b", "method: lora, rank: 8, targets: all-linear") ==
        48 * 8 * (attention + 128 * expert));
  // All of them that are modules in Transformers 5.
  CHECK(trained("qwen3-30b-a3b", "method: lora, rank: 8, targets: all-linear") ==
        48 * 8 * attention);
  CHECK(trained("qwen3-30b-a3b", "method: lora, rank: 8, targets: attention") ==
        48 * 8 * attention);
  CHECK(of_modules("mixtral-8x7b", "method: lora, rank: 8, targets: [down]") ==
        32 * 8 * 8 * (14336 + 4096));
}

// Of Qwen3.5 4B each fourth layer attends, with a gate that is projected with the queries: PEFT has
// 64 tensors there, and none on the delta nets.
TEST_CASE("a hybrid's adapters are of the layers that have the projection") {
  CHECK(trained("qwen3.5-4b", "method: lora, rank: 8, targets: attention") == 1'572'864);
  CHECK(trained("qwen3.5-4b", "method: lora, rank: 8, targets: [up]") == 32 * 8 * (2560 + 9216));
  CHECK(trained("falcon-h1-7b", "method: lora, rank: 1, targets: [k]") == 44 * (3072 + 256));
  CHECK(trained("deepseek-v3", "method: lora, rank: 1, targets: [o], dropout: 0.1") ==
        61 * (7168 + 128 * 128));
}

TEST_CASE("without adapters all parameters are trained") {
  const Scenario s = tuned("llama-3-8b", "method: full");
  CHECK(trained_parameters(s.model, s.training.fine_tuning) == parameter_count(s.model));
}

}  // namespace trained_parameters_test
