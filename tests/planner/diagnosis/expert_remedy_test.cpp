// Mixtral 8x7B on 16 H100s: whole experts do not fit, and what is said about it.
#include "planner/diagnosis/expert_remedy.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "costmodel/estimate/evaluator.hpp"
#include "planner/diagnosis/remedies.hpp"
#include "tests/costmodel/support/scenarios.hpp"
#include "tests/planner/support/in_process.hpp"

namespace expert_remedy_test {

using costmodel::Evaluator;
using costmodel::Scenario;
using scenarios::read;

namespace {

Scenario mixtral(const std::string& etp) {
  return read(
      "model: mixtral-8x7b\n"
      "cluster: {base: dgx-h100, devices: 16}\n"
      "training: {global_batch: 128, sequence: 2048, stack: megatron-core-2025}\n"
      "plan: {tp: 4, pp: 1, dp: 4, ep: 4, micro_batch: 1, zero: 1" +
      etp + "}\n");
}

// What ZeRO 1 leaves of 2 + 4 + 12 bytes a parameter: experts over etp and ep, all else over tp, of
// a vocabulary of 32,000 that Megatron-LM pads to a multiple of 128 tp; the optimizer's over the
// replicas of each.
double states(int etp) {
  const double experts = 32.0 * 8 * 3 * 4096 * 14336, router_and_norms = 32 * (8 + 2) * 4096 + 4096;
  const double attention = 32.0 * 2 * (4096 * 4096 + 4096 * 1024), tables = 2.0 * 32256 * 4096;
  const double own = experts / 4 / etp, all_else = (attention + tables) / 4 + router_and_norms;
  return (own + all_else) * (2 + 4) + 12 * (own * etp / 4 + all_else / 4);
}

}  // namespace

TEST_CASE("Mixtral 8x7B's states by hand: 97.9 GiB of whole experts, 50.6 of quarters") {
  constexpr double gib = 1024.0 * 1024 * 1024;
  for (const int etp : {1, 2, 4}) {
    const Scenario s = mixtral(", etp: " + std::to_string(etp));
    Evaluator evaluator(s.model, s.cluster, s.training);
    const auto memory = evaluator.estimate(resolve_plan(s)).memory.at(0);
    const double held = (memory.weights + memory.gradients + memory.optimizer).value;
    CHECK(held == doctest::Approx(states(etp)).epsilon(1e-9));
  }
  CHECK(states(1) / gib == doctest::Approx(97.9).epsilon(1e-3));
  CHECK(states(4) / gib == doctest::Approx(50.6).epsilon(1e-3));
}

TEST_CASE("a plan that does not fit is given the expert tensor sizes that do") {
  const Scenario s = mixtral(", etp: 1");
  Evaluator evaluator(s.model, s.cluster, s.training);
  const auto estimate = evaluator.estimate(resolve_plan(s));
  CHECK_FALSE(estimate.fits());
  std::vector<std::string> set;
  for (const planner::Remedy& remedy : planner::fitting_changes(estimate, s))
    if (remedy.settings.size() == 1) set.push_back(remedy.settings.front());
  for (const char* size : {"plan.etp=2", "plan.etp=4"}) CHECK(std::ranges::count(set, size) == 1);
  CHECK(in_process::run("shardplan evaluate mixtral-8x7b-16-h100").warnings.empty());
}

TEST_CASE("a search in which nothing fits tries the expert tensor sizes, each found by a search") {
  const Scenario s = mixtral(", etp: 1");
  Evaluator evaluator(s.model, s.cluster, s.training);
  const auto failed = planner::search(s, evaluator);
  REQUIRE(failed.plans.empty());
  const auto diagnosis = planner::diagnose(s, failed);
  for (const std::string start : {"plan.etp=2: ", "plan.etp=4: "}) {
    CAPTURE(start);
    const auto line = std::ranges::find_if(diagnosis.remedies, [&](const planner::Remedy& r) {
      return r.sentence().rfind(start, 0) == 0;
    });
    REQUIRE(line != diagnosis.remedies.end());
    CHECK(line->sentence().find(" fits in ") != std::string::npos);
  }
}

TEST_CASE("sizes not tried: divisors of a node but the fixed one, or else but 1 and tp") {
  CHECK(planner::untried_expert_sizes(mixtral(", etp: 1")) == std::vector<int>{2, 4, 8});
  CHECK(planner::untried_expert_sizes(mixtral(", etp: 4")) == std::vector<int>{1, 2, 8});
  CHECK(planner::untried_expert_sizes(mixtral("")) == std::vector<int>{2, 8});
  const Scenario dense = read(
      "model: llama-3-8b\ncluster: {base: dgx-h100, devices: 16}\n"
      "training: {global_batch: 128, sequence: 2048, stack: megatron-core-2025}\nplan: {}\n");
  CHECK(planner::untried_expert_sizes(dense).empty());
}

}  // namespace expert_remedy_test
