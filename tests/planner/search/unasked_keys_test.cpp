// What a key that nobody asked for would gain: against all plans of the space, one by one.
#include "planner/search/unasked_keys.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "costmodel/estimate/evaluator.hpp"
#include "planner/report/strategy_text.hpp"
#include "planner/search/search_space.hpp"
#include "tests/costmodel/support/scenarios.hpp"

namespace unasked_keys_test {

using namespace costmodel;
using planner::Strategies;

namespace {

Scenario scenario(const std::string& stack, const std::string& memory,
                  const std::string& plan = "{}") {
  return scenarios::read(fmt::format(
      "model: {{kind: llama, layers: 8, hidden: 2048, heads: 16, kv_heads: 4, ffn_hidden: 8192, "
      "vocab: 32000}}\ncluster: {{base: pcie-8x-rtx-4090, devices: 8, device: {{base: rtx-4090, "
      "memory: {{bytes: {}}}}}}}\ntraining: {{global_batch: 64, sequence: 2048, stack: {}}}\n"
      "search: {{memory_margin: 0, simpler_within: 0}}\nplan: {}\n",
      memory, stack, plan));
}

Strategies searched(const Scenario& s) {
  Strategies all = run_strategies(s, planner::Reach::even, 1, {});
  planner::add_unasked(all, s, 2);
  return all;
}

// The least time of the plans with the key, by trying every plan.
std::optional<Seconds> least_with(Scenario s, const planner::UnaskedRow& row) {
  s.plan.automatic.emplace_back(row.key);
  Evaluator evaluator(s.model, s.cluster, s.training);
  std::optional<Seconds> least;
  for (const auto& family : planner::enumerate(s).families) {
    for (const ParallelPlan& plan : planner::members(family, s)) {
      if (!row.used(plan) || !evaluator.cost(plan).within(planner::memory_limit(s))) continue;
      const Seconds time = evaluator.iteration_time(plan);
      if (!least || time < *least) least = time;
    }
  }
  return least;
}

}  // namespace

TEST_CASE("what a key gains is what the fastest even plan with it takes, or nothing") {
  int gains = 0, none = 0;
  for (const char* stack : {"deepspeed-2021", "peft", "torchtitan", "megatron-core-2024"}) {
    for (const char* memory : {"80 GiB", "6 GiB", "4 GiB"}) {
      CAPTURE(stack);
      CAPTURE(memory);
      const Scenario s = scenario(stack, memory);
      const Strategies all = searched(s);
      if (all.found.plans.empty()) {
        CHECK(all.unasked.empty());
        continue;
      }
      const auto rows = planner::unasked_keys(s);
      REQUIRE(all.unasked.size() == rows.size());
      const Seconds below = all.found.plans.front().iteration / planner::worth_a_key;
      for (std::size_t i = 0; i < rows.size(); ++i) {
        const planner::UnaskedKey& one = all.unasked[i];
        CAPTURE(one.key);
        CHECK(one.key == rows[i].key);
        const auto least = least_with(s, rows[i]);
        CHECK(one.plan.has_value() == (least && *least <= below));
        ++(one.plan ? gains : none);
        if (!one.plan) continue;
        CHECK(one.plan->iteration.value == least->value);
        CHECK(rows[i].used(one.plan->plan));
      }
    }
  }
  CHECK(gains > 0);
  CHECK(none > 0);
}

TEST_CASE("keys that are written, or that the stack has not, are not looked at") {
  using Keys = std::vector<std::string_view>;
  const auto keys = [](const char* stack, const char* plan) {
    Keys all;
    for (const auto& row : planner::unasked_keys(scenario(stack, "80 GiB", plan)))
      all.push_back(row.key);
    return all;
  };
  CHECK(keys("torchtitan", "{}") == Keys{"offload", "dp_replicate"});
  CHECK(keys("torchtitan", "{offload: auto}") == Keys{"dp_replicate"});
  CHECK(keys("torchtitan", "{dp_replicate: 2, offload: {}}").empty());
  CHECK(keys("megatron-2021", "{}").empty());
}

TEST_CASE(
    "of two dispatchers the one that is not taken is looked at, and tried where it is asked") {
  const auto read = [](const char* plan) {
    return scenarios::read(
        fmt::format("model: qwen3-30b-a3b\ncluster: {{base: dgx-h100, devices: 8}}\ntraining: "
                    "{{global_batch: 64, sequence: 4096, stack: megatron-bridge}}\nplan: {}\n",
                    plan));
  };
  const auto asked = [&](const char* plan) {
    return std::ranges::count(planner::unasked_keys(read(plan)), "dispatcher",
                              &planner::UnaskedRow::key);
  };
  CHECK(asked("{}") == 1);
  CHECK(asked("{dispatcher: auto}") == 0);
  CHECK(asked("{dispatcher: alltoall}") == 0);
  const auto dispatchers = [&](const char* plan) {
    std::set<Dispatcher> all;
    for (const auto& recipe : planner::recipes_offered(read(plan), 8, 1, 1))
      all.insert(recipe.dispatcher);
    return all;
  };
  using All = std::set<Dispatcher>;
  CHECK(dispatchers("{}") == All{Dispatcher::hybridep});
  CHECK(dispatchers("{dispatcher: auto}") == All{Dispatcher::hybridep, Dispatcher::deepep});
  CHECK(planner::recipes_offered(read("{dispatcher: allgather}"), 8, 1, 1).size() == 1);
}

TEST_CASE("the report has the gain and how to get it; without a search, that there was none") {
  const Scenario s = scenario("deepspeed-2021", "4 GiB");
  Strategies all = searched(s);
  REQUIRE_FALSE(all.found.plans.empty());
  const auto key = std::ranges::find(all.unasked, "offload", &planner::UnaskedKey::key);
  REQUIRE(key != all.unasked.end());
  REQUIRE(key->plan);
  const std::string gain = planner::unasked_gain(*key, all, s);
  CHECK(gain.find("--set plan.offload=auto") != std::string::npos);
  CHECK(gain.find("of host memory a node") != std::string::npos);
  CHECK(unasked_keys_sentence(all, s).find("plan.offload") == std::string::npos);

  const Scenario roomy = scenario("torchtitan", "80 GiB");
  all = searched(roomy);
  for (const auto& one : all.unasked) CHECK(planner::unasked_gain(one, all, roomy).empty());
  CHECK(unasked_keys_sentence(all, roomy).starts_with("No even plan with states or activations"));
  all.unasked.clear();
  planner::add_unasked(all, roomy, 2, [] { return true; });
  CHECK(all.unasked.empty());
  const std::string unknown = unasked_keys_sentence(all, roomy);
  CHECK(unknown.starts_with("Searched only where it is asked for"));
  CHECK(unknown.find("plan.offload=auto") != std::string::npos);
  CHECK(unknown.find("plan.dp_replicate=auto") != std::string::npos);
}

}  // namespace unasked_keys_test
