// What is said of a plan before it is used: of the stage that is fullest for its own devices.
#include "planner/commands/session.hpp"

#include <doctest/doctest.h>

#include "costmodel/base/unit_text.hpp"
#include "costmodel/estimate/plan_estimate.hpp"
#include "planner/diagnosis/reason.hpp"
#include "tests/costmodel/support/scenarios.hpp"

namespace plan_warnings_test {

using costmodel::Estimate;
using costmodel::Scenario;
using fixtures::contains;

namespace {

// An H100 of 80 GiB with most of the activations before a V100 of 32 GiB with half of them.
Estimate estimate_of_two_kinds(int micro_batch) {
  const Scenario s = scenarios::read(
      "model: gpt2-medium\n" +
      scenarios::joined(scenarios::group("large", "dgx-h100", 1) + ", " +
                        scenarios::group("small", "dgx-v100", 1)) +
      "training: {global_batch: 240, sequence: 1024, precision: fp16, stack: megatron-2021}\n"
      "plan: {micro_batch: " +
      std::to_string(micro_batch) +
      ", stages: [{dp: 1, layers: 12, group: large}, {dp: 1, layers: 12, group: small}]}\n");
  return estimate_of(s.model, s.cluster, s.training, resolve_plan(s));
}

}  // namespace

TEST_CASE("the stage that does not fit is the fullest for its own devices, not the largest") {
  const Estimate e = estimate_of_two_kinds(24);
  REQUIRE(e.memory.size() == 2);
  REQUIRE(e.memory[0].total() > e.memory[1].total());
  REQUIRE(e.memory[0].total() < e.stage_capacity[0]);
  REQUIRE(e.memory[1].total() > e.stage_capacity[1]);
  CHECK(e.fullest == 1);
  const auto lines = planner::memory_warnings(e);
  REQUIRE(lines.size() == 1);
  CHECK(lines.front() == "warning: the plan does not fit in memory: stage 1 needs " +
                             format_bytes(e.memory[1].total()) + " of " +
                             format_bytes(e.stage_capacity[1]));
  CHECK(contains(planner::reasons(e).back(), "the fullest rank of stage 1"));
}

TEST_CASE("a plan that fits is not warned of") {
  CHECK(planner::memory_warnings(estimate_of_two_kinds(1)).empty());
}

TEST_CASE("notes become lines") {
  CHECK(planner::note_lines({"one", "two"}) == std::vector<std::string>{"note: one", "note: two"});
  CHECK(planner::note_lines({}).empty());
}

}  // namespace plan_warnings_test
