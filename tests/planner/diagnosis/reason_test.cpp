// Why a plan is best: the words, and that "one step away" is what `evaluate` would say.
#include "planner/diagnosis/reason.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <map>

#include "costmodel/config/yaml.hpp"
#include "costmodel/estimate/evaluator.hpp"
#include "costmodel/scenario/plan_reader.hpp"
#include "planner/search/grid_search.hpp"
#include "tests/costmodel/support/fixtures.hpp"
#include "tests/costmodel/support/scenarios.hpp"

namespace reason_test {

using namespace planner;
using costmodel::Estimate;
using costmodel::Evaluator;
using costmodel::Scenario;
using costmodel::Seconds;

namespace {

Scenario scenario(const std::vector<std::string>& assignments = {}) {
  const auto path = fixtures::configs();
  return costmodel::load_scenario(find_config(path, "scenarios", "gpt3-175b-selene", {}), path,
                                  assignments);
}

Evaluator evaluator_of(const Scenario& s) { return Evaluator(s.model, s.cluster, s.training); }

}  // namespace

TEST_CASE("shares are the parts that are not zero, and add up") {
  const Scenario s = scenario({"plan.tp=8", "plan.pp=16", "plan.recompute=full"});
  Evaluator evaluator = evaluator_of(s);
  const Estimate e = evaluator.estimate(resolve_plan(s));
  double sum = 0;
  for (const Share& share : shares(e)) {
    CHECK(share.time.value > 0);
    CHECK(share.of_iteration == doctest::Approx(share.time / e.iteration));
    sum += share.of_iteration;
  }
  CHECK(sum == doctest::Approx(1).epsilon(1e-9));
}

TEST_CASE("a difference tells at most three parts, largest first, gains with a minus") {
  Estimate best, other;
  best.iteration = Seconds(10);
  best.breakdown.compute = other.breakdown.compute = Seconds(8);
  CHECK(difference(best, other) == "nothing that counts");
  other.breakdown.bubble = Seconds(1.2);
  CHECK(difference(best, other) == "+1.2 s pipeline bubble");
  best.breakdown.recompute = Seconds(2);
  CHECK(difference(best, other) == "-2 s recomputation, +1.2 s pipeline bubble");
  other.breakdown.tp_comm = Seconds(0.5);
  other.breakdown.optimizer = Seconds(0.4);
  CHECK(difference(best, other) ==
        "-2 s recomputation, +1.2 s pipeline bubble, +500 ms tensor-parallel communication");
  other = best;
  other.breakdown.dp_comm = Seconds(0.019);  // under two thousandths of the iteration
  CHECK(difference(best, other) == "nothing that counts");
}

TEST_CASE("reasons: one sentence on time, one on memory") {
  for (const auto* recompute : {"plan.recompute=none", "plan.recompute=full"}) {
    const Scenario s = scenario({"plan.tp=8", "plan.pp=16", recompute});
    Evaluator evaluator = evaluator_of(s);
    const auto sentences = reasons(evaluator.estimate(resolve_plan(s)));
    REQUIRE(sentences.size() == 2);
    CHECK(sentences[0].starts_with("Computation is "));
    for (const auto& sentence : sentences) CHECK(sentence.ends_with("."));
  }
}

TEST_CASE("where a host sets the pace, a reason names it; a larger micro-batch waits less") {
  const auto waits_of = [](int micro_batch) {
    const Scenario s = scenarios::read(fmt::format(
        "model: llama-3.2-1b\ncluster: {{base: dgx-b200, devices: 1}}\ntraining: {{global_batch: "
        "16, "
        "sequence: 1024, stack: peft, fine_tuning: {{method: lora}}}}\nplan: {{micro_batch: {}}}\n",
        micro_batch));
    Evaluator evaluator(s.model, s.cluster, s.training);
    const Estimate e = evaluator.estimate(resolve_plan(s));
    const Seconds waits = host_waits(e, {}, evaluator);
    CHECK(waits < e.iteration);
    const auto sentences = reasons(e, {}, waits);
    CHECK((sentences.size() == 3) == (waits >= e.iteration * 0.1));
    if (sentences.size() == 3) CHECK(sentences[1].find("wait for their host") != std::string::npos);
    return waits / e.iteration;
  };
  CHECK(waits_of(1) > 0.5);
  CHECK(waits_of(16) < waits_of(1) / 2);
}

TEST_CASE("the keys that are fixed are those the plan gives a value, in its own order") {
  const auto fixed = [](const std::string& plan) {
    return fixed_keys(costmodel::read_plan(costmodel::parse_yaml(plan, "plan.yaml")));
  };
  using Keys = std::vector<std::string>;
  CHECK(fixed("{}") == Keys{});
  CHECK(fixed("{micro_batch: 2, tp: 8, recompute: none, rank_order: tp-cp-ep-dp-pp}") ==
        Keys{"micro_batch", "tp", "recompute", "rank_order"});
  CHECK(fixed("{stages: [{tp: 2, dp: 1}], stage_layers: [4]}") == Keys{"stages", "stage_layers"});
  CHECK(fixed("{pp: auto, dp: auto, zero: null, cp_comm: none, offload: none}") == Keys{});
  CHECK(fixed("{cp: 2, cp_comm: a2a}") == Keys{"cp", "cp_comm"});
}

TEST_CASE("one step away is the evaluation of that plan") {
  const Scenario s = scenario({"search.max_tp=8", "search.max_micro_batch=2", "search.max_vpp=2"});
  Evaluator evaluator = evaluator_of(s);
  const SearchResult found = search(s, evaluator);
  REQUIRE_FALSE(found.plans.empty());
  const Estimate& best = found.plans.front();
  const auto steps = one_step_away(best, s, evaluator);
  CHECK(steps.size() >= 5);
  for (const Step& step : steps) {
    CAPTURE(step.knob);
    CAPTURE(step.change);
    const auto arrow = step.change.find(" -> ");
    REQUIRE(arrow != std::string::npos);
    auto plan = best.plan;
    std::string to = step.change.substr(arrow + 4);
    const auto vpp = to.find(" (vpp ");
    if (vpp != std::string::npos) plan.vpp = std::stoi(to.substr(vpp + 6)), to.resize(vpp);
    if (step.knob == "tp") plan.tp = std::stoi(to);
    if (step.knob == "pp") plan.pp = std::stoi(to);
    if (step.knob == "vpp") plan.vpp = std::stoi(to);
    if (step.knob == "micro_batch") plan.micro_batch = std::stoi(to);
    if (step.knob == "zero") plan.zero = std::stoi(to);
    if (step.knob == "sequence_parallel") plan.sequence_parallel = to == "on";
    if (step.knob == "recompute")
      plan.recompute = {to == "none"   ? costmodel::Recomputation::none
                        : to == "full" ? costmodel::Recomputation::full
                                       : costmodel::Recomputation::selective,
                        0};
    plan.dp = static_cast<int>(s.cluster.devices / (plan.tp * plan.pp));
    if (plan.tp == 1) plan.sequence_parallel = false;
    plan.schedule =
        plan.vpp > 1 ? costmodel::ScheduleKind::interleaved : costmodel::ScheduleKind::one_f_one_b;
    REQUIRE(is_valid(plan, s.model, s.cluster, s.training));
    Evaluator fresh = evaluator_of(s);
    const Estimate e = fresh.estimate(plan);
    CHECK(e.iteration.value == doctest::Approx(step.iteration.value).epsilon(1e-12));
    CHECK(e.peak.value == doctest::Approx(step.peak.value).epsilon(1e-12));
    CHECK(e.fits() == step.fits);
    if (step.fits) CHECK(step.iteration.value >= best.iteration.value * (1 - 1e-9));
  }
}

TEST_CASE("a step away from one group of shards is one a node, and back") {
  const Scenario s = scenario({"cluster.devices=32", "training.stack=torchtitan",
                               "model=llama-3-8b", "training.global_batch=64"});
  Evaluator evaluator = evaluator_of(s);
  costmodel::ParallelPlan plan;
  plan.dp = 32;
  plan.zero = 3;
  const auto change = [&] {
    for (const Step& step : one_step_away(evaluator.estimate(plan), s, evaluator))
      if (step.knob == "dp_replicate") return step.change;
    return std::string("none");
  };
  CHECK(change() == "1 -> 4");
  plan.dp_replicate = 4;
  CHECK(change() == "4 -> 1");
  plan.dp_replicate = 1;
  plan.dp = 4, plan.cp = 8;  // a node is a group of context ranks
  CHECK(change() == "1 -> 4");
  plan.dp = 32, plan.cp = 1;
  plan.zero = 0;
  CHECK(change() == "none");
  plan.dp_replicate = 1;
  plan.zero = 0;
  CHECK(change() == "none");
}

}  // namespace reason_test
