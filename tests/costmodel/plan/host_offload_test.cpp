// Model states and activations in host memory: bytes against DeepSpeed's own estimates, the step by
// hand, and what a plan must obey.
#include "costmodel/plan/host_offload.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>

#include "costmodel/estimate/plan_estimate.hpp"
#include "costmodel/model/parameter_count.hpp"
#include "tests/costmodel/support/scenarios.hpp"

namespace host_offload_test {

using namespace costmodel;

namespace {

Scenario scenario(const std::string& model, int devices, const std::string& plan,
                  const std::string& stack = "deepspeed-2021") {
  return scenarios::read(
      fmt::format("model: {}\ncluster: {{base: dgx-a100, devices: {}}}\n"
                  "training: {{global_batch: 64, sequence: 1024, precision: fp16, stack: {}}}\n"
                  "plan: {{tp: 1, pp: 1, micro_batch: 1, recompute: full, {}}}\n",
                  model, devices, stack, plan));
}

Estimate estimate(const Scenario& s) {
  return estimate_of(s.model, s.cluster, s.training, resolve_plan(s));
}

double states(const StageMemory& memory) {
  return (memory.weights + memory.gradients + memory.optimizer).value;
}

std::string fault(const std::string& plan, const std::string& stack = "deepspeed-2021") {
  return scenarios::fault_of([&] { return scenario("gpt2-xl", 8, plan, stack); });
}

// Of more than one kind of size, tables tied and not; without experts, whose shards are others.
const std::vector<std::string> ten{"gpt2",       "gpt2-xl",    "bloom-7b1", "gpt-neox-20b",
                                   "llama-2-7b", "llama-3-8b", "llama-13b", "mistral-7b",
                                   "qwen2-7b",   "llama-2-70b"};
constexpr double exact = 0.01, buffers = 1.5;

}  // namespace

// estimate_zero2_model_states_mem_needs (deepspeed/runtime/zero/stage_1_and_2.py), cpu_offload: two
// bytes a parameter on each device; on the host sixteen, times a factor for buffers. (Above four
// devices it counts what the processes read when they start, four bytes each.)
TEST_CASE("ZeRO 2 with the optimizer on the host: DeepSpeed's estimate of ten models") {
  for (const std::string& model : ten) {
    CAPTURE(model);
    const Scenario s = scenario(model, 4, "zero: 2, offload: optimizer");
    const double psi = parameter_count(s.model);
    const Estimate e = estimate(s);
    CHECK(states(e.memory.front()) == doctest::Approx(2 * psi).epsilon(exact));
    CHECK(e.host.value == doctest::Approx(16 * psi * buffers).epsilon(exact));
  }
}

// estimate_zero3_model_states_mem_needs (deepspeed/runtime/zero/stage3.py) of two nodes: with the
// optimizer's states on the host two bytes of each device's shard, and sixteen of a node's part on
// it; with the parameters nothing, and eighteen; without either eighteen of each shard.
TEST_CASE("ZeRO 3 with and without the host: DeepSpeed's estimate of ten models") {
  for (const std::string& model : ten) {
    CAPTURE(model);
    const Scenario some = scenario(model, 16, "zero: 3, offload: optimizer");
    const double psi = parameter_count(some.model);
    const Estimate e = estimate(some);
    CHECK(states(e.memory.front()) == doctest::Approx(2 * psi / 16).epsilon(exact));
    CHECK(e.host.value == doctest::Approx(16 * psi / 2 * buffers).epsilon(exact));

    const Estimate all = estimate(scenario(model, 16, "zero: 3, offload: parameters"));
    CHECK(states(all.memory.front()) == doctest::Approx(0).scale(psi));
    CHECK(all.host.value == doctest::Approx(18 * psi / 2 * buffers).epsilon(exact));

    Scenario none = scenario(model, 16, "zero: 3");
    none.training.gradient_precision = Precision::fp32;  // as at its step
    CHECK(states(estimate(none).memory.front()) == doctest::Approx(18 * psi / 16).epsilon(exact));
  }
}

// Ten billion parameters take CPU-Adam 2.57 s on a DGX-2 (Ren et al. 2021, table 4), whose memory
// moves 256 GB/s; a DGX A100's 409.6 GB/s. The gradients are there already, and the 16-bit
// parameters of each shard come back over its own link.
TEST_CASE("the step on the host takes what CPU-Adam took, by the memory of its processors") {
  const Scenario s = scenario("gpt-neox-20b", 8, "zero: 3, offload: optimizer");
  const double psi = parameter_count(s.model);
  const double adam = 2.57 * psi / 10e9 * 256 / 409.6;
  const double back = 2 * psi / 8 / s.cluster.device.host_bandwidth.value;
  const Estimate e = estimate(s);
  CHECK(e.breakdown.optimizer.value == doctest::Approx(adam + back).epsilon(0.01));
  const Estimate all = estimate(scenario("gpt-neox-20b", 8, "zero: 3, offload: parameters"));
  CHECK(all.breakdown.optimizer.value == doctest::Approx(adam).epsilon(0.01));
}

TEST_CASE("states on the host are something that no published run has") {
  const auto has = [](const std::string& plan) {
    const std::vector<std::string> all = estimate(scenario("gpt2-xl", 8, plan)).unknown;
    return std::find(all.begin(), all.end(), "with states in host memory") != all.end();
  };
  CHECK(has("zero: 3, offload: parameters"));
  CHECK_FALSE(has("zero: 3"));
}

TEST_CASE("half of the states: half of the bytes, and the slower half of the step") {
  const auto of = [](const std::string& share) {
    return estimate(scenario("gpt2-xl", 8, "zero: 1, offload: {optimizer: " + share + "}"));
  };
  const Estimate none = of("0"), half = of("0.5"), all = of("1");
  CHECK(none.host.value == 0);
  CHECK(half.host.value == doctest::Approx(all.host.value / 2));
  CHECK(half.memory.front().optimizer.value ==
        doctest::Approx(none.memory.front().optimizer.value / 2));
  CHECK(half.breakdown.optimizer.value == doctest::Approx(all.breakdown.optimizer.value / 2));
  CHECK(all.breakdown.optimizer > none.breakdown.optimizer);
}

TEST_CASE("parameters are fetched for every pass: a slow link sets the pace, a fast one hides") {
  Scenario s = scenario("llama-2-7b", 8, "zero: 3, offload: parameters");
  const auto forward = [&s](double gigabytes) {
    s.cluster.device.host_bandwidth = BytesPerSecond(gigabytes * 1e9);
    return estimate(s).stage_forward.front().value;
  };
  const double fast = forward(1e6), slow = forward(0.1);
  const double shard = 2 * parameter_count(s.model) / 8;
  CHECK(slow == doctest::Approx(shard / 0.1e9).epsilon(0.1));
  CHECK(fast < slow / 10);
}

TEST_CASE("a host that is too small does not hold it, and an unknown one is not judged") {
  Scenario s = scenario("llama-2-7b", 8, "zero: 3, offload: parameters");
  CHECK(estimate(s).fits());
  s.cluster.host_memory = estimate(s).host - Bytes(1);
  CHECK_FALSE(estimate(s).fits());
  s.cluster.host_memory = Bytes(0);
  CHECK(estimate(s).fits());
}

TEST_CASE("activations of n layers leave the device, and wait on the host") {
  const auto of = [](int layers) {
    Scenario s = scenario("llama-2-7b", 8,
                          fmt::format("zero: 1, offload: {{activations: {{layers: {}}}}}", layers),
                          "megatron-core-2024");
    s.plan.recompute = Recompute{};
    return estimate(s);
  };
  const Estimate none = of(0), four = of(4), eight = of(8);
  const Bytes each = (none.memory.front().activations - four.memory.front().activations) / 4;
  CHECK(each > Bytes(0));
  CHECK(eight.memory.front().activations.value ==
        doctest::Approx((none.memory.front().activations - each * 8).value));
  CHECK(four.host.value == doctest::Approx((each * 4 * 8).value));  // of a node's eight devices
  CHECK(eight.host.value == doctest::Approx(2 * four.host.value));
  CHECK(eight.iteration >= four.iteration);
}

TEST_CASE("what cannot be kept on the host is refused with a remedy") {
  CHECK(fault("zero: 2, offload: parameters").find("sharded ones; set zero: 3") !=
        std::string::npos);
  CHECK(fault("zero: 3, offload: {parameters: 1}").find("updated there") != std::string::npos);
  CHECK(fault("zero: 3, offload: parameters", "megatron-core-2026").find("keeps no parameters") !=
        std::string::npos);
  CHECK(fault("zero: 1, offload: optimizer", "megatron-2021").find("keeps no optimizer states") !=
        std::string::npos);
  CHECK(fault("offload: {activations: {layers: 4}}", "megatron-core-2025").find("recomputed") !=
        std::string::npos);
  CHECK(fault("zero: 1, offload: optimizer").empty());
  const std::string many = scenarios::fault_of([] {
    Scenario s = scenario("gpt2-xl", 8, "zero: 1, offload: {activations: {layers: 99}}",
                          "megatron-core-2024");
    s.plan.recompute = Recompute{};
    return s;
  });
  CHECK(many.find("set layers: 47 or fewer") != std::string::npos);
  // No schedule makes a decoder of an encoder-decoder model.
  const std::string two = scenarios::fault_of([] {
    Scenario s = scenario("t5-3b", 8, "zero: 1, offload: {activations: {modules: [core_attn]}}",
                          "megatron-core-2026");
    s.plan.recompute = Recompute{};
    return s;
  });
  CHECK(two.find("pipelines of decoders; leave them out") != std::string::npos);
}

}  // namespace host_offload_test
