#include "planner/sharding/sharded_plan.hpp"

#include <doctest/doctest.h>

#include "costmodel/estimate/evaluator.hpp"
#include "tests/costmodel/support/scenarios.hpp"

namespace sharded_plan_test {

using costmodel::Evaluator;
using costmodel::ParallelPlan;

namespace {

const auto anything = [](const ParallelPlan&) { return true; };

costmodel::Scenario scenario(const std::string& model) {
  return scenarios::read(
      "model: {" + model +
      "}\ncluster: {base: dgx-h100, devices: 8}\n"
      "training: {global_batch: 64, sequence: 8192, stack: megatron-core-2026}\n");
}

planner::StageGraph graph_of(const costmodel::Scenario& s, const Evaluator& evaluator,
                             const ParallelPlan& plan) {
  planner::StageSpec spec;
  const auto kind = s.model.experts > 0 ? costmodel::LayerKind::moe : costmodel::LayerKind::block;
  spec.layers.assign(2, {kind, costmodel::Recomputed::nothing});
  spec.mesh = planner::device_mesh(plan, s.cluster);
  spec.micro_batch = plan.micro_batch * plan.dp;
  spec.memory = costmodel::Bytes(1e15);
  return stage_graph(spec, evaluator);
}

std::vector<ParallelPlan> plans(bool experts) {
  std::vector<ParallelPlan> all;
  const auto add = [&](int dp, int tp, int cp, int ep, auto change) {
    ParallelPlan p;
    p.dp = dp;
    p.tp = tp;
    p.cp = cp;
    p.ep = ep;
    p.micro_batch = 2;
    change(p);
    all.push_back(p);
  };
  const auto plain = [](ParallelPlan&) {};
  for (const int zero : {0, 1, 2, 3}) add(8, 1, 1, 1, [&](ParallelPlan& p) { p.zero = zero; });
  if (experts) {
    add(8, 1, 1, 8, plain);
    add(8, 1, 1, 4, [](ParallelPlan& p) { p.zero = 1; });
    return all;
  }
  add(1, 8, 1, 1, plain);
  add(2, 4, 1, 1, [](ParallelPlan& p) { p.sequence_parallel = true, p.zero = 1; });
  add(2, 1, 4, 1, [](ParallelPlan& p) { p.zero = 1; });
  add(1, 2, 4, 1, [](ParallelPlan& p) { p.sequence_parallel = true; });
  add(1, 1, 8, 1, [](ParallelPlan& p) { p.cp_comm = costmodel::ContextExchange::a2a; });
  return all;
}

}  // namespace

TEST_CASE("a plan's own sharding reads back as the plan") {
  for (const bool experts : {false, true}) {
    const auto s = scenario(experts ? "base: mixtral-8x7b" : "base: llama-3-8b");
    const Evaluator evaluator(s.model, s.cluster, s.training);
    for (const ParallelPlan& plan : plans(experts)) {
      CAPTURE(plan.tp);
      CAPTURE(plan.cp);
      CAPTURE(plan.dp);
      CAPTURE(plan.ep);
      CAPTURE(plan.zero);
      const auto graph = graph_of(s, evaluator, plan);
      const auto own = hand_sharding(graph, plan);
      REQUIRE(own.reason == "");
      const auto found = nearest_plan(graph, own.choice, ParallelPlan{}, anything);
      REQUIRE(found);
      CHECK(found->unlike.empty());
      CHECK(found->unlike_gain.value == 0);
      CHECK(found->plan == plan);
    }
  }
}

TEST_CASE("operators that no plan cuts so are named, with what they gain") {
  const auto s = scenario("base: llama-3-8b");
  const Evaluator evaluator(s.model, s.cluster, s.training);
  const ParallelPlan plan = plans(false)[5];  // dp 2, tp 4, sequence parallel
  const auto graph = graph_of(s, evaluator, plan);
  auto mixed = hand_sharding(graph, plan).choice;
  const std::size_t offset = graph.has_input ? 1 : 0;
  const std::size_t odd = graph.nodes.size() - 1;  // a residual that both axes compute in full
  for (std::size_t c = 0; c < graph.problem.nodes[odd + offset].size(); ++c) {
    mixed[odd + offset] = static_cast<int>(c);
    if (graph.strategy(odd, mixed).split ==
        std::array{planner::Split::whole, planner::Split::whole})
      break;
  }
  const auto found = nearest_plan(graph, mixed, ParallelPlan{}, anything);
  REQUIRE(found);
  CHECK(found->plan == plan);
  CHECK(found->unlike == std::vector<std::size_t>{odd});
  CHECK(found->unlike_gain.value < 0);  // it only takes longer
  CHECK_FALSE(nearest_plan(graph, mixed, ParallelPlan{}, [](const auto&) { return false; }));
}

}  // namespace sharded_plan_test
