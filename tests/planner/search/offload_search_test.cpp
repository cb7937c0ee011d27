// What waits in host memory, searched: the best plan against all plans of the space.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>

#include "costmodel/estimate/evaluator.hpp"
#include "planner/search/grid_search.hpp"
#include "planner/search/search_space.hpp"
#include "tests/costmodel/support/scenarios.hpp"

namespace offload_search_test {

using namespace costmodel;

namespace {

Scenario scenario(const std::string& stack, const std::string& offload,
                  const std::string& memory = "80 GiB") {
  return scenarios::read(fmt::format(
      "model: {{kind: llama, layers: 8, hidden: 2048, heads: 16, kv_heads: 4, ffn_hidden: 8192, "
      "vocab: 32000}}\ncluster: {{base: dgx-a100, devices: 8, device: {{base: a100-sxm4-80gb, "
      "memory: {{bytes: {}}}}}}}\ntraining: {{global_batch: 16, sequence: 2048, stack: {}}}\n"
      "search: {{memory_margin: 0, simpler_within: 0, rows: plans}}\nplan: {{offload: {}}}\n",
      memory, stack, offload));
}

}  // namespace

TEST_CASE("the search of plans that offload is exact") {
  for (const char* stack : {"deepspeed-2021", "peft", "torchtitan", "megatron-core-2024"}) {
    for (const char* offload :
         {"optimizer", "parameters", "{optimizer: 0.5}", "{activations: {layers: 4}}",
          "{activations: {modules: [core_attn]}}", "{optimizer: 1, to: nvme}", "auto"}) {
      for (const char* memory : {"80 GiB", "12 GiB", "6 GiB"}) {
        CAPTURE(stack);
        CAPTURE(offload);
        CAPTURE(memory);
        const Scenario s = scenario(stack, offload, memory);
        Evaluator evaluator(s.model, s.cluster, s.training);
        const auto found = planner::search(s, evaluator), all = planner::brute_force(s, evaluator);
        REQUIRE(found.plans.size() == all.plans.size());
        for (std::size_t i = 0; i < all.plans.size(); ++i)
          CHECK(found.plans[i].iteration.value == all.plans[i].iteration.value);
      }
    }
  }
}

TEST_CASE("auto tries what the stack keeps there, and nothing else") {
  const auto tried = [](const char* stack) {
    std::vector<HostOffload> all;
    for (const auto& family : planner::enumerate(scenario(stack, "auto")).families)
      if (std::ranges::find(all, family.plan.offload) == all.end())
        all.push_back(family.plan.offload);
    return all;
  };
  CHECK(tried("peft") ==
        std::vector<HostOffload>{{},
                                 {.optimizer = 1},
                                 {.optimizer = 1, .parameters = 1},
                                 {.optimizer = 1, .parameters = 1, .to = OffloadTo::nvme}});
  CHECK(tried("megatron-core-2026").back().modules != 0);
  CHECK(tried("megatron-core-2025").size() == 1 + 4 + 4);  // quarters of states, and of layers
  CHECK(tried("megatron-core-2025").back().activation_layers == 7);  // the last layer stays
  CHECK(tried("fms-fsdp") == std::vector<HostOffload>{{}});
}

TEST_CASE("on one rank states in host memory are those of a sharded optimizer too") {
  Scenario s = scenario("deepspeed-2021", "auto", "10 GiB");
  s.cluster.devices = 1;
  Evaluator evaluator(s.model, s.cluster, s.training);
  const auto found = planner::search(s, evaluator);
  REQUIRE_FALSE(found.plans.empty());  // 0.5 B parameters take 8 GB and more with their states
  CHECK(found.plans.front().plan.offload.states());
  CHECK(found.plans.front().plan.zero > 0);
  for (const auto& family : planner::enumerate(s).families)
    for (const ParallelPlan& plan : planner::members(family, s))
      if (plan.offload.states()) REQUIRE(plan.zero > 0);
}

TEST_CASE("with room on the device auto keeps nothing on the host, with too little it does") {
  const auto chosen = [](const char* memory) {
    const Scenario s = scenario("deepspeed-2021", "auto", memory);
    Evaluator evaluator(s.model, s.cluster, s.training);
    return planner::search(s, evaluator).plans.front().plan.offload;
  };
  CHECK_FALSE(chosen("80 GiB").any());
  CHECK(chosen("3 GiB").parameters == 1);
}

}  // namespace offload_search_test
