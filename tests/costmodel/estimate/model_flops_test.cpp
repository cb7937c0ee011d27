// Model FLOPs with attention in full and halved for causality, against published formulas.
#include "costmodel/estimate/model_flops.hpp"

#include <doctest/doctest.h>

#include <string>

#include "costmodel/estimate/evaluator.hpp"
#include "tests/costmodel/support/estimated.hpp"
#include "tests/costmodel/support/scenarios.hpp"

namespace model_flops_test {

using namespace costmodel;
using fixtures::Case;
using fixtures::relative_error;

namespace {

constexpr int batch = 8;

Scenario scenario(const std::string& model, int sequence) {
  return scenarios::read("model: " + model +
                         "\ncluster: {base: dgx-h100, devices: 8}\n"
                         "training: {global_batch: 8, sequence: " +
                         std::to_string(sequence) +
                         ", precision: bf16, stack: megatron-core-2026}\n");
}

Estimate estimated(const Scenario& s) {
  return Evaluator(s.model, s.cluster, s.training).estimate(resolve_plan(s));
}

double causal_per_token(const std::string& model, int sequence) {
  return estimated(scenario(model, sequence)).causal_model_flops.value / batch / sequence;
}

}  // namespace

TEST_CASE("GPT: 72Blsh²(1 + s/6h + V/12lh) in full, half of s/6h with a causal mask") {
  for (const Case& c : fixtures::cases) {
    const double B = static_cast<double>(c.batch), s = static_cast<double>(c.sequence);
    const double l = static_cast<double>(c.layers), h = static_cast<double>(c.hidden);
    const double V = static_cast<double>(c.vocab);
    for (const auto kernel : {AttentionKernel::unfused, AttentionKernel::flash}) {
      const Estimate e = fixtures::estimated(c, {}, kernel);
      const double causal = 72 * B * s * l * h * h * (1 + s / (12 * h) + V / (12 * l * h));
      CHECK(relative_error(e.causal_model_flops.value, causal) <= 1e-12);
      CHECK(relative_error(e.causal_mfu / e.mfu, e.causal_model_flops / e.model_flops) <= 1e-12);
      CHECK(relative_error(e.causal_rate_per_device.value / e.model_rate_per_device.value,
                           e.causal_model_flops / e.model_flops) <= 1e-12);
    }
  }
}

// Megatron-Bridge logs 249.7 GFLOP a token of 4,096 without multi-token prediction: attention
// causal, and without the routers, 58 times 7,168 x 256.
TEST_CASE("DeepSeek-V3: the GFLOP a token that Megatron-Bridge logs") {
  const double routers = 6.0 * 58 * 7168 * 256;
  CHECK(relative_error(causal_per_token("deepseek-v3", 4096) - routers, 249.7e9) < 1e-3);
}

// num_floating_point_operations of megatron/training/training.py, grouped queries and SwiGLU:
// 3 x (4h·(h + h·g/a + s/2) + 6h·f) a layer and 6hV, a token.
TEST_CASE("Llama 3 8B: the FLOPs that Megatron-LM's --log-throughput counts") {
  const double h = 4096, f = 14336, s = 8192, V = 128256;
  const double megatron = 3 * 32 * (4 * h * (h + h * 8 / 32 + s / 2) + 6 * h * f) + 6 * h * V;
  CHECK(relative_error(causal_per_token("llama-3-8b", 8192), megatron) <= 1e-12);
}

// Every token takes as many experts, however they lie; what a capacity pads is executed, not the
// model's. Recomputed FLOPs are of all ranks, not of as many as the fullest.
TEST_CASE("uneven routing costs time and no model FLOPs") {
  const auto routed = [](const std::string& load) {
    return estimated(scenarios::read(
        "model: qwen3-30b-a3b\ncluster: {base: dgx-h100, devices: 16}\n"
        "training: {global_batch: 64, sequence: 4096, precision: bf16, stack: megatron-core-2026" +
        load + "}\nplan: {ep: 16, recompute: full, zero: 1}\n"));
  };
  const Estimate even = routed("");
  for (const char* const load : {", expert_imbalance: 3", ", expert_load: {skew: 1}"}) {
    CAPTURE(load);
    const Estimate uneven = routed(load);
    CHECK(uneven.iteration > even.iteration);
    CHECK(uneven.model_flops == even.model_flops);
    CHECK(uneven.hardware_flops == even.hardware_flops);
    CHECK(uneven.mfu / even.mfu == doctest::Approx(even.iteration / uneven.iteration));
  }
  const Estimate padded = routed(", capacity_factor: 1.5");
  CHECK(padded.model_flops == even.model_flops);
  CHECK(padded.hardware_flops > even.hardware_flops);
}

TEST_CASE("an encoder's attention and cross-attention are not masked") {
  const Scenario s = scenario("t5-3b", 512);
  const Estimate e = estimated(s);
  // 24 decoder layers, 12 FLOPs a query, key and channel in full.
  const auto queries = static_cast<double>(s.training.decoder_sequence);
  const double own = 24 * 12 * queries * queries * (32 * 128) * batch;
  CHECK(relative_error((e.model_flops - e.causal_model_flops).value, own / 2) <= 1e-9);
}

}  // namespace model_flops_test
