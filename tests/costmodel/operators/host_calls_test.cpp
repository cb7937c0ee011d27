// The host of eager layers: what its calls depend on, and when they set the pace.
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
      "training: {{global_batch: 8, sequence: 512{}{}}}\n"
      "plan: {{dp: 8, zero: 1{}}}\n",
      model, cluster, training.find("stack") == training.npos ? ", stack: megatron-bridge" : "",
      training, plan);
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
  const HostCalls many = host_calls(eight, Pass::forward, {}),
                  few = host_calls(two, Pass::forward, {});
  CHECK(many.calls == few.calls);
  CHECK(many.launches == 8);
  CHECK(few.launches == 2);
  CHECK(host_calls(eight, Pass::forward, {.narrow = true}).launches == 16);
  // Backward each of them is a parameter, with its gradient and its hook.
  CHECK(host_calls(eight, Pass::weight_gradient, {}).launches > 2 * many.launches);
}

TEST_CASE(
    "a product that casts its operands keeps the host longer, one outside the module shorter") {
  const auto calls = [](bool wide, bool narrow, Pass pass) {
    const Node node{Site::qkv, Linear{.m = 64, .n = 64, .k = 64, .wide = wide}, {}};
    return host_calls(node, pass, {.narrow = narrow}).calls;
  };
  for (const Pass pass : {Pass::forward, Pass::input_gradient, Pass::weight_gradient}) {
    CHECK(calls(false, true, pass) >= 2 * calls(false, false, pass));
    CHECK(calls(true, true, pass) == calls(true, false, pass));
    CHECK(calls(true, true, pass) < calls(false, false, pass));
  }
}

TEST_CASE("a ring of keys and values adds the same calls with each step") {
  const Node ring{Site::kv_ring,
                  Collective{CollectiveKind::ring, CollectiveKind::ring, Axis::context, Bytes(64)},
                  {}};
  for (const Pass pass : {Pass::forward, Pass::input_gradient}) {
    const auto calls = [&](int cp) { return host_calls(ring, pass, {.cp = cp}).calls; };
    CHECK(calls(2) > 0);
    CHECK(calls(4) - calls(3) == calls(3) - calls(2));
    CHECK(calls(3) > calls(2));
  }
}

TEST_CASE("rows are permuted by a map and a copy, and within the exchange of HybridEP") {
  const auto calls = [](Site site, Dispatcher dispatcher) {
    return host_calls({site, Permute{64, 64, 2}, {}}, Pass::forward, {.dispatcher = dispatcher})
        .calls;
  };
  CHECK(calls(Site::permute, Dispatcher::alltoall) > calls(Site::unpermute, Dispatcher::alltoall));
  CHECK(calls(Site::sort_by_expert, Dispatcher::alltoall) == 2);
  CHECK(calls(Site::sort_by_expert, Dispatcher::deepep) >
        calls(Site::permute, Dispatcher::alltoall));
  CHECK(calls(Site::sort_by_expert, Dispatcher::hybridep) == 0);
}

TEST_CASE("a norm is a module unless it is part of the product after it") {
  const auto calls = [](Site site, int gains, bool latent) {
    const Node node{site, Norm{64, 64, Normalization::rmsnorm, gains}, {}};
    return host_calls(node, Pass::forward, {.latent = latent}).calls;
  };
  CHECK(calls(Site::attention_norm, 1, false) == 1);
  CHECK(calls(Site::attention_norm, 1, true) == calls(Site::mlp_norm, 1, true));
  CHECK(calls(Site::mlp_norm, 1, false) > 1);
  CHECK(calls(Site::latent_norm, 1, true) == 1);
  CHECK(calls(Site::qk_norm, 2, false) == 2 * calls(Site::mlp_norm, 1, false));
}

TEST_CASE("kernels that do several steps save the host their calls") {
  const Node rotary{Site::rotary, Rotary{64, 64}, {}},
      routing{Site::top_k_routing, {Routing{64, 8, 2}}, {}};
  for (const Pass pass : {Pass::forward, Pass::input_gradient}) {
    const auto calls = [&](const Node& node, const LayerCalls& layer) {
      return host_calls(node, pass, layer).calls;
    };
    CHECK(calls(rotary, {}) < calls(rotary, {.fused_rotary = false}));
    CHECK(calls(rotary, {.fused_rotary = false}) <
          calls(rotary, {.latent = true, .fused_rotary = false}));
    CHECK(calls(routing, {.fused_router = true}) < calls(routing, {}));
    CHECK(calls(routing, {}) < calls(routing, {.sigmoid = true}));
  }
}

TEST_CASE("each function that recomputes a part of a layer has its calls") {
  const auto functions = [](std::initializer_list<Region> regions, Recomputed what) {
    OpList list;
    for (const Region region : regions) list.nodes.push_back({.region = region});
    return checkpoint_calls(list, what).calls;
  };
  const std::initializer_list<Region> layer = {Region::norm, Region::latent_up, Region::latent_up,
                                               Region::rest, Region::norm,      Region::experts};
  const int one = functions({Region::norm}, Recomputed{8});
  CHECK(one > 0);
  CHECK(functions(layer, Recomputed::nothing) == 0);
  CHECK(functions(layer, Recomputed{8}) == 2 * one);
  CHECK(functions(layer, Recomputed{2}) == one);
  CHECK(functions(layer, Recomputed{8 | 2}) == 3 * one);
  CHECK(functions(layer, Recomputed::everything) == one);
  CHECK(functions({Region::experts, Region::expert_activation, Region::experts}, Recomputed{32}) ==
        one);
}

TEST_CASE("rows whose number is known, or which kernels count, save the host its preprocessing") {
  const Node routing{Site::top_k_routing, Routing{1024, 64, 8}, {}};
  const auto calls = [&](const LayerCalls& r) {
    return host_calls(routing, Pass::forward, r).calls;
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

TEST_CASE("a host whose calls are unknown, or not counted, has launches of kernels") {
  const LayerCost unknown = layer(small("", ", ep: 8", "dgx-a100"));
  CHECK(unknown.forward.launches == unknown.forward.kernels);
  const LayerCost counted = layer(small("", "", "dgx-h100", "llama-3-8b"), LayerKind::block);
  CHECK(counted.forward.launches > counted.forward.kernels);
  const LayerCost dense =
      layer(small(", stack: megatron-core-2024", "", "dgx-h100", "llama-3-8b"), LayerKind::block);
  CHECK(dense.forward.launches == dense.forward.kernels);
}

TEST_CASE("more experts of a rank cost launches and no calls") {
  const LayerCost few = layer(small("")), many = layer(small("", ", ep: 4"));
  const Seconds start = Seconds(4.5e-6);
  // 16 more, in two products forward.
  CHECK((many.forward.host - few.forward.host).value == doctest::Approx(32 * start.value));
}

TEST_CASE(
    "a small eager layer without experts takes as long as its host, and one in a graph does not") {
  const auto yaml = [](const std::string& graph, int cp, const std::string& precision) {
    return fmt::format(
        "model: llama-3-8b\ncluster: {{base: dgx-h100, devices: 8}}\n"
        "training: {{global_batch: 8, sequence: 1024, precision: {}, stack: megatron-bridge, "
        "overlap: {{cuda_graph: {}}}}}\nplan: {{dp: {}, cp: {}, zero: 1}}\n",
        precision, graph, 8 / cp, cp);
  };
  const auto forward = [&](const std::string& graph, int cp, const std::string& precision) {
    return layer(yaml(graph, cp, precision), LayerKind::block).forward;
  };
  for (const int cp : {1, 2}) {
    for (const std::string precision : {"bf16", "fp8"}) {
      const Cost eager = forward("false", cp, precision), graph = forward("[layer]", cp, precision);
      CHECK(eager.waited.value > 0);
      CHECK(eager.host > graph.host);
      CHECK(eager.compute > graph.compute);
    }
  }
  CHECK(forward("false", 1, "fp8").host > forward("false", 1, "bf16").host);
  CHECK(forward("false", 2, "bf16").host > forward("false", 1, "bf16").host);
}

}  // namespace host_calls_test
