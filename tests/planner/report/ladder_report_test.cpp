#include "planner/report/machines_report.hpp"

#include <doctest/doctest.h>

#include "tests/planner/support/device_runs.hpp"

TEST_CASE("A ladder's report begins with the verdict, and has a row for each number tried") {
  const auto s = device_runs::priced();
  const planner::RunLimits limits{.days = 60, .usd = 0};
  const auto ladder = planner::device_ladder(s, limits);
  REQUIRE(ladder.chosen);
  const auto& chosen = ladder.rungs[*ladder.chosen];
  const std::string verdict = ladder_verdict(ladder, limits, s);
  CHECK(verdict.starts_with("The fewest of those tried that train 100 B tokens in 60.0 days: " +
                            std::to_string(chosen.devices) + " devices take "));
  const auto table = ladder_table(ladder);
  REQUIRE(table.rows.size() == ladder.rungs.size());
  for (const auto& row : table.rows) CHECK(row.size() == table.columns.size());
  CHECK(table.rows[*ladder.chosen][5] == "yes: chosen");
  const std::string report = ladder_report(ladder, limits, s, {});
  CHECK(report.starts_with(verdict));
  CHECK(report.find("dollars") != std::string::npos);
}

TEST_CASE("A ladder without an answer tells the soonest") {
  const auto s = device_runs::priced();
  const planner::RunLimits limits{.days = 0.5, .usd = 0};
  const auto ladder = planner::device_ladder(s, limits);
  const std::string verdict = ladder_verdict(ladder, limits, s);
  CHECK(verdict.starts_with("No number of devices up to 64 trains 100 B tokens in 0.5 days: "));
  CHECK(verdict.find("the soonest") != std::string::npos);
}

TEST_CASE("A budget that nothing meets names the cheapest, of those in time, not more devices") {
  const auto s = device_runs::priced();
  for (const double days : {0.0, 60.0}) {
    const planner::RunLimits limits{.days = days, .usd = 1};
    const auto ladder = planner::device_ladder(s, limits);
    REQUIRE_FALSE(ladder.chosen);
    const planner::Rung* cheapest = nullptr;
    for (const auto& rung : ladder.rungs) {
      if (!rung.best || (days > 0 && rung.run.days_with_failures > days)) continue;
      if (cheapest == nullptr || rung.run.usd < cheapest->run.usd) cheapest = &rung;
    }
    REQUIRE(cheapest != nullptr);
    const std::string verdict = ladder_verdict(ladder, limits, s);
    CHECK(verdict.find(": " + std::to_string(cheapest->devices) + " devices take ") !=
          std::string::npos);
    CHECK(verdict.ends_with(days > 0 ? ", the cheapest in time." : ", the cheapest."));
  }
}

TEST_CASE("A ladder that was stopped is named so, and denies nothing of what it did not try") {
  const auto s = device_runs::priced();
  const planner::RunLimits limits{.days = 60, .usd = 0};
  const auto stopped = planner::device_ladder(s, limits, {}, [] { return true; });
  REQUIRE(stopped.interrupted);
  REQUIRE_FALSE(stopped.chosen);
  CHECK(ladder_verdict(stopped, limits, s).starts_with("Stopped early: "));
  auto later = planner::device_ladder(s, limits);
  later.interrupted = true;
  CHECK(ladder_verdict(later, limits, s).starts_with("The fewest of those tried before it was "));
}
