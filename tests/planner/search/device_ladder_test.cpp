#include "planner/search/device_ladder.hpp"

#include <doctest/doctest.h>

#include "costmodel/estimate/evaluator.hpp"
#include "planner/search/grid_search.hpp"
#include "tests/planner/support/device_runs.hpp"
#include "tests/sanitized.hpp"

namespace device_ladder_test {

using planner::device_ladder;

namespace {

const planner::SearchMethod even{.reach = planner::Reach::even};

// The days of the best even plan on so many devices; 0: there is none.
double days_on(std::int64_t devices) {
  auto s = device_runs::priced();
  s.cluster = resized(s.cluster, devices);
  costmodel::Evaluator evaluator(s.model, s.cluster, s.training);
  const auto found = planner::search(s, evaluator);
  if (found.plans.empty()) return 0;
  const auto goodput = costmodel::goodput(found.plans.front(), s.cluster, s.training);
  return training_run(found.plans.front(), goodput, s.cluster, s.training)->days_with_failures;
}

}  // namespace

TEST_CASE("A deadline gets the fewest whole nodes that keep it") {
  const auto s = device_runs::priced();
  for (const std::int64_t enough : thinned(std::vector<std::int64_t>{24, 16, 32, 64}, 2)) {
    const double days = days_on(enough) * 1.0001;
    const auto ladder = device_ladder(s, {.days = days, .usd = 0}, even);
    REQUIRE(ladder.chosen);
    const std::int64_t chosen = ladder.rungs[*ladder.chosen].devices;
    CHECK(chosen <= enough);
    CHECK(ladder.rungs[*ladder.chosen].run.days_with_failures <= days);
    for (std::int64_t n = 8; n < chosen; n += 8) {
      const double longer = days_on(n);
      CHECK((longer == 0 || longer > days));
    }
  }
}

TEST_CASE("A deadline that no number keeps chooses none, and all that might were tried") {
  const auto s = device_runs::priced();
  const auto ladder = device_ladder(s, {.days = days_on(64) / 2, .usd = 0}, even);
  CHECK_FALSE(ladder.chosen);
  REQUIRE_FALSE(ladder.rungs.empty());
  CHECK(ladder.rungs.back().devices == 64);
}

TEST_CASE("A budget gets the cheapest of all numbers tried, within the deadline too") {
  const auto s = device_runs::priced();
  const auto all = device_ladder(s, {.days = 0, .usd = 1e9}, even);
  REQUIRE(all.chosen);
  const double least = *all.rungs[*all.chosen].run.usd;
  for (const auto& rung : all.rungs)
    if (rung.best) CHECK(*rung.run.usd >= least);
  CHECK_FALSE(device_ladder(s, {.days = 0, .usd = least / 2}, even).chosen);
  const double days = days_on(64) * 1.0001;
  const auto soon = device_ladder(s, {.days = days, .usd = 1e9}, even);
  REQUIRE(soon.chosen);
  CHECK(soon.rungs[*soon.chosen].run.days_with_failures <= days);
}

// Numbers of nodes that divide neither batch nor layers have uneven plans. The limits keep the
// search short.
TEST_CASE("Each number has the plan that the search finds there, uneven ones too") {
  const auto s = scenarios::read(
      "model: llama-3-70b\n"
      "cluster: {base: dgx-h100, devices: 1024, price: {usd_per_device_hour: 2.5}}\n"
      "training: {global_batch: 1024, sequence: 8192, stack: megatron-core-2026, precision: fp8, "
      "tokens: 5T}\n"
      "search: {max_micro_batch: 1, max_cp: 1, max_vpp: 1, max_tp: 4, zero: [1], recompute: "
      "[none]}\n");
  const auto ladder = device_ladder(s, {.days = 62, .usd = 0});
  REQUIRE(ladder.chosen);
  int uneven = 0;
  for (const auto& rung : thinned(ladder.rungs, 8)) {
    CAPTURE(rung.devices);
    CHECK((rung.best || rung.devices < 512));
    if (!rung.best || rung.devices < 512) continue;
    auto there = s;
    there.cluster = resized(s.cluster, rung.devices);
    const auto best = planner::chosen_plan(there);
    REQUIRE(best);
    CHECK(best->plan == rung.best->plan);
    CHECK(best->iteration == rung.best->iteration);
    uneven += best->plan.stage_layers.empty() ? 0 : 1;
  }
  CHECK((sanitized || uneven >= 3));
}

TEST_CASE("A ladder that is stopped says so") {
  const auto ladder =
      device_ladder(device_runs::priced(), {.days = 30, .usd = 0}, even, [] { return true; });
  CHECK(ladder.interrupted);
  CHECK_FALSE(ladder.chosen);
}

}  // namespace device_ladder_test
