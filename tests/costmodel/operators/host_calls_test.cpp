// The host of eager layers with experts: what its calls depend on, and when they set the pace.
#include "costmodel/operators/host_calls.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>

#include "costmodel/estimate/evaluator.hpp"
#include "tests/costmodel/support/scenarios.hpp"

namespace host_calls_test {

using namespace costmodel;

namespace {

// Few tokens a rank, so that the host is slower than the device.
std::string small(const std::string& training, const std::string& plan = ", ep: 8",
                  const std::string& cluster = "dgx-h100",
                  const std::string& model = "qwen3-30b-a3b") {
  return fmt::format(
      "model: {}\ncluster: {{base: {}, devices: 8}}\n"
      "training: {{global_batch: 8, sequence: 512, stack: megatron-bridge{}}}\n"
      "plan: {{dp: 8, zero: 1{}}}\n",
      model, cluster, training, plan);
}

LayerCost layer(const std::string& yaml, LayerKind kind = LayerKind::moe) {
  const Scenario s = scenarios::read(yaml);
  Evaluator evaluator(s.model, s.cluster, s.training);
  return evaluator.layer(kind, resolve_plan(s), Recomputed::nothing);
}

}  // namespace

TEST_CASE("a product of experts launches a kernel for each, and a cast of narrow operands") {
  const Node eight{Site::expert_up, GroupedLinear{1024, 64, 64, 8, false, Seconds(0)}, {}},
      two{Site::expert_up, GroupedLinear{1024, 64, 64, 2, false, Seconds(0)}, {}};
  const HostCalls many = host_calls(eight, Pass::forward, false, {}),
                  few = host_calls(two, Pass::forward, false, {});
  CHECK(many.calls == few.calls);
  CHECK(many.launches == 8);
  CHECK(few.launches == 2);
  CHECK(host_calls(eight, Pass::forward, true, {}).launches == 16);
}

TEST_CASE("rows whose number is known, or which kernels count, save the host its preprocessing") {
  const Node routing{Site::top_k_routing, Routing{1024, 64, 8}, {}};
  const auto calls = [&](const RoutingCalls& r) {
    return host_calls(routing, Pass::forward, false, r).calls;
  };
  const int alone = calls({Dispatcher::alltoall, false});
  const int dropless = calls({Dispatcher::alltoall, true});
  CHECK(alone < dropless);
  CHECK(calls({Dispatcher::hybridep, true}) < dropless);
  CHECK(calls({Dispatcher::alltoall, true, true, true}) <
        calls({Dispatcher::alltoall, true, true}));
}

TEST_CASE("the host sets the pace of an eager layer with few tokens, and graphs take its calls") {
  const LayerCost eager = layer(small("")),
                  scopes = layer(small(", overlap: {cuda_graph: [moe_router, moe_preprocess]}")),
                  more =
                      layer(small(", overlap: {cuda_graph: [attn, moe_router, moe_preprocess]}")),
                  all = layer(small(", overlap: {cuda_graph: true}"));
  for (const auto pass : {&LayerCost::forward, &LayerCost::backward}) {
    CHECK((eager.*pass).time() >= (eager.*pass).host);
    CHECK((eager.*pass).launches > (eager.*pass).kernels);
    CHECK((more.*pass).host < (scopes.*pass).host);
    CHECK((scopes.*pass).host < (eager.*pass).host);
    CHECK((all.*pass).host < (more.*pass).host);
    CHECK((all.*pass).time() < (eager.*pass).time());
  }
  // Some hundreds of calls and launches, forward and backward.
  CHECK(eager.forward.launches + eager.backward.launches > 150);
  CHECK(eager.forward.launches + eager.backward.launches < 400);
}

TEST_CASE("a host whose calls are unknown, and layers without experts, have launches of kernels") {
  const LayerCost unknown = layer(small("", ", ep: 8", "dgx-a100"));
  CHECK(unknown.forward.launches == unknown.forward.kernels);
  const LayerCost dense = layer(small("", "", "dgx-h100", "llama-3-8b"), LayerKind::block);
  CHECK(dense.forward.launches == dense.forward.kernels);
}

TEST_CASE("more experts of a rank cost launches and no calls") {
  const LayerCost few = layer(small("")), many = layer(small("", ", ep: 4"));
  const Seconds start = Seconds(4.5e-6);
  // 16 more, in two products forward.
  CHECK((many.forward.host - few.forward.host).value == doctest::Approx(32 * start.value));
}

}  // namespace host_calls_test
