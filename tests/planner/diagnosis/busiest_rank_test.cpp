// What limits an iteration is read off the rank that works, not off one that waits for it.

#include <doctest/doctest.h>

#include "costmodel/estimate/evaluator.hpp"
#include "planner/diagnosis/reason.hpp"
#include "planner/report/report_tables.hpp"
#include "tests/costmodel/support/fixtures.hpp"
#include "tests/costmodel/support/scenarios.hpp"

namespace busiest_rank_test {

using fixtures::contains;
using planner::busiest_rank;
using scenarios::read;

namespace {

// Llama 3 70B on 64 H100: the first of four stages has three layers less than the others.
const std::string l70 =
    "model: llama-3-70b\ncluster: {base: dgx-h100, devices: 64}\n"
    "training: {global_batch: 512, sequence: 8192, stack: megatron-core-2026}\n"
    "plan: {tp: 4, pp: 4, micro_batch: 1, zero: 1, sequence_parallel: true, "
    "recompute: {granularity: full, layers: 1}, stage_layers: ";

struct Evaluated {
  costmodel::Scenario scenario;
  costmodel::Evaluator evaluator;
  costmodel::Estimate estimate;
  explicit Evaluated(const std::string& yaml)
      : scenario(read(yaml)),
        evaluator(scenario.model, scenario.cluster, scenario.training),
        estimate(evaluator.estimate(resolve_plan(scenario))) {}
};

}  // namespace

TEST_CASE("the slowest rank's parts are its own, and add up to the iteration") {
  Evaluated of(l70 + "[18, 21, 21, 20]}\n");
  const auto& e = of.estimate;
  const auto busiest = busiest_rank(e, of.evaluator);
  REQUIRE(busiest);
  CHECK(e.critical_rank == 0);
  CHECK(busiest->rank != 0);
  const auto& b = busiest->breakdown;
  CHECK(b.total().value == doctest::Approx(e.iteration.value).epsilon(1e-9));
  CHECK(b.imbalance.value == 0);
  const auto r = static_cast<std::size_t>(busiest->rank);
  const double work = 128 * (e.stage_forward[r] + e.stage_backward[r]).value;
  CHECK((b.compute + b.recompute + b.tp_comm).value == doctest::Approx(work).epsilon(0.005));
  for (std::size_t k = 0; k < 4; ++k) {
    CHECK(e.stage_forward[r] + e.stage_backward[r] >= e.stage_forward[k] + e.stage_backward[k]);
  }
}

TEST_CASE("the sentence and the table are of the slowest rank where the last to finish waits") {
  Evaluated of(l70 + "[18, 21, 21, 20]}\n");
  const auto busiest = busiest_rank(of.estimate, of.evaluator);
  const auto told = planner::reasons(of.estimate, busiest).front();
  CHECK(contains(told, "of the iteration on pipeline rank"));
  CHECK_FALSE(contains(told, "wait for slower stages"));
  CHECK(contains(planner::reasons(of.estimate).front(), "wait for slower stages"));
  const auto table = planner::time_table(of.estimate, planner::unlimited_width, busiest);
  REQUIRE(table.columns.size() == 6);
  for (const auto& row : table.rows) {
    if (row[0] != "wait for slower stages") continue;
    CHECK(row[2] != "0.0 %");
    CHECK(row[4] == "0.0 %");
  }
}

TEST_CASE("no rank stands out where none waits for slower ones, or there is one stage") {
  Evaluated even(
      "model: gpt3-175b\ncluster: {base: selene, devices: 1024}\n"
      "training: {global_batch: 1536, sequence: 2048, stack: megatron-2021}\n"
      "plan: {tp: 8, pp: 16, micro_batch: 1, recompute: full}\n");
  CHECK(even.estimate.breakdown.imbalance / even.estimate.iteration > planner::least_wait);
  CHECK_FALSE(busiest_rank(even.estimate, even.evaluator));  // recomputation and bubble are more
  Evaluated one(
      "model: llama-3-8b\ncluster: {base: dgx-h100, devices: 8}\n"
      "training: {global_batch: 16, sequence: 4096}\nplan: {zero: 1}\n");
  CHECK_FALSE(busiest_rank(one.estimate, one.evaluator));
}

}  // namespace busiest_rank_test
