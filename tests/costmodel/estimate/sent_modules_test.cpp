// Activations of modules in host memory: which tensors leave the device, by hand, and their time.
#include "costmodel/estimate/sent_modules.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "costmodel/estimate/plan_estimate.hpp"
#include "tests/costmodel/support/scenarios.hpp"

namespace sent_modules_test {

using namespace costmodel;

namespace {

constexpr double tokens = 4096, hidden = 4096, keys = 1024, layers = 32;

Scenario scenario(const std::string& modules, const std::string& plan = "tp: 1, pp: 4") {
  return scenarios::read(fmt::format(
      "model: llama-3-8b\ncluster: {{base: dgx-h100, devices: 8}}\n"
      "training: {{global_batch: 64, sequence: 4096, precision: bf16, stack: megatron-core-2026}}\n"
      "plan: {{{}, micro_batch: 1, recompute: none, zero: 1{}}}\n",
      plan, modules.empty() ? "" : ", offload: {activations: {modules: [" + modules + "]}}"));
}

Estimate estimate(const Scenario& s) {
  return estimate_of(s.model, s.cluster, s.training, resolve_plan(s));
}

// Of a layer and a micro-batch, in host memory: the fullest rank of four holds four micro-batches
// of eight layers.
double sent(const std::string& modules) {
  return estimate(scenario(modules)).memory.front().pinned.value / (4 * layers / 4);
}

}  // namespace

TEST_CASE("a module sends what it saves, unless another that stays saves it too") {
  const double wide = 2 * tokens * hidden, narrow = 2 * tokens * (hidden + 2 * keys);
  CHECK(sent("attn_norm") == doctest::Approx(wide));
  CHECK(sent("qkv_linear") == doctest::Approx(wide));
  CHECK(sent("core_attn") == doctest::Approx(narrow));  // its result is the projection's input
  CHECK(sent("core_attn, attn_proj") == doctest::Approx(narrow + wide));
  CHECK(sent("attn_norm, mlp_norm") == doctest::Approx(2 * wide));
}

TEST_CASE("the device keeps what is left, and two layers' that come back") {
  const Estimate none = estimate(scenario("")), some = estimate(scenario("core_attn, attn_proj"));
  const double layer = 2 * tokens * (2 * hidden + 2 * keys), in_flight = 4, own = layers / 4;
  CHECK((none.memory.front().activations - some.memory.front().activations).value ==
        doctest::Approx(layer * (in_flight * own - 2)));
  CHECK(some.host.value == doctest::Approx(8 * layer * in_flight * own));  // of eight ranks
  CHECK(none.host.value == 0);
}

TEST_CASE("a link that is fast enough hides it, a slow one shows in every stage") {
  Scenario s = scenario("core_attn, attn_proj");
  const auto forward = [&s](double gigabytes) {
    s.cluster.device.host_bandwidth = BytesPerSecond(gigabytes * 1e9);
    return estimate(s).stage_forward;
  };
  const auto fast = forward(1e5), slow = forward(1);
  const double layer = 2 * tokens * (2 * hidden + 2 * keys);
  for (std::size_t k = 0; k < fast.size(); ++k) {
    CHECK(slow[k] > fast[k]);
    CHECK(slow[k].value < fast[k].value + layers / 4 * layer / 1e9);
  }
}

TEST_CASE("what Megatron-LM refuses of modules is refused") {
  const auto fault = [](const std::string& modules, const std::string& plan) {
    return scenarios::fault_of([&] { return scenario(modules, plan); });
  };
  const auto has = [](const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
  };
  CHECK(has(fault("attn_proj", "tp: 1, pp: 4"), "add core_attn"));
  CHECK(has(fault("expert_fc1", "tp: 1, pp: 4"), "in a model without"));
  CHECK(has(fault("core_attn", "tp: 1, pp: 4, schedule: zero-bubble-h1"), "set schedule: 1f1b"));
  CHECK(has(fault("core", "tp: 1"), "attn_norm, qkv_linear, core_attn"));
  CHECK(fault("core_attn", "tp: 1, pp: 4").empty());
}

}  // namespace sent_modules_test
