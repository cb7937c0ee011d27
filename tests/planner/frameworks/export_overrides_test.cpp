// Fields that several arguments make together, and arguments that have none.
#include "planner/frameworks/export_overrides.hpp"

#include <doctest/doctest.h>

#include <string>

#include "tests/planner/support/megatron_cases.hpp"

namespace export_overrides_test {

using costmodel::ParallelPlan;
using costmodel::Scenario;

namespace {

std::string value_of(const Scenario& s, const ParallelPlan& plan, const std::string& field) {
  const auto out = planner::export_overrides(planner::export_megatron(s, plan), s, plan,
                                             planner::OverrideTarget::bridge);
  CHECK(out.without.empty());
  for (const auto& override : out.list)
    if (override.field == field) return override.value;
  return "absent";
}

}  // namespace

TEST_CASE("layers with experts are a list, not an expression") {
  const Scenario s = megatron::scenario_of(
      "{kind: moe, layers: 4, hidden: 256, heads: 4, vocab: 512, ffn_hidden: 512, experts: 4, "
      "top_k: 2, expert_ffn_hidden: 256, first_dense_layers: 2}");
  ParallelPlan plan = megatron::small_plan();
  plan.sequence_parallel = true;
  CHECK(value_of(s, plan, "model.moe_layer_freq") == "[0,0,1,1]");
  CHECK(value_of(s, plan, "model.num_moe_experts") == "4");
}

TEST_CASE("transfers overlap where stages are interleaved only") {
  const Scenario s = megatron::tiny_llama();
  ParallelPlan plan{.tp = 1, .pp = 4, .dp = 4, .vpp = 2};
  plan.schedule = costmodel::usual_schedule(2);
  CHECK(value_of(s, plan, "model.overlap_p2p_comm") == "true");
  CHECK(value_of(s, plan, "model.batch_p2p_comm") == "false");
  CHECK(value_of(s, megatron::small_plan(), "model.overlap_p2p_comm") == "false");
}

TEST_CASE("an argument without a field is named") {
  const Scenario s = megatron::tiny_llama();
  planner::MegatronExport exported = planner::export_megatron(s, megatron::small_plan());
  exported.arguments.emplace_back("--moe-upcycling-granularity 2");
  const auto out = planner::export_overrides(exported, s, megatron::small_plan(),
                                             planner::OverrideTarget::bridge);
  CHECK(out.without == std::vector<std::string>{"--moe-upcycling-granularity 2"});
}

}  // namespace export_overrides_test
