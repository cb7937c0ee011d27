#include "planner/accuracy/rank_agreement.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <string>

namespace rank_agreement_test {

using namespace planner;

namespace {

ValidationRow run(const std::string& workload, const std::string& plan, double measured,
                  double predicted) {
  ValidationRow row{workload + plan, "source", "iteration_s", measured, predicted, {}, "", {}};
  row.facts.workload_key = row.facts.workload = workload;
  row.facts.plan = row.facts.plan_text = plan;
  row.facts.pair_spread = 0.1;
  return row;
}

}  // namespace

TEST_CASE("Spearman's correlation, ties at their mean rank") {
  CHECK(spearman({1, 2, 3, 4}, {10, 20, 30, 40}) == doctest::Approx(1));
  CHECK(spearman({1, 2, 3, 4}, {4, 3, 2, 1}) == doctest::Approx(-1));
  CHECK(spearman({1, 2, 3, 4, 5}, {2, 1, 4, 3, 5}) == doctest::Approx(1 - 6.0 * 4 / (5 * 24)));
  CHECK(spearman({1, 2, 2, 3}, {1, 2, 3, 4}) == doctest::Approx(4.5 / std::sqrt(4.5 * 5)));
  CHECK(spearman({1, 1, 1}, {1, 2, 3}) == 0);
}

TEST_CASE("plans are ranked within a workload, repeated runs once") {
  // a: right, right, wrong; the plan measured twice counts at its geometric mean, 2.
  std::vector<ValidationRow> rows{run("a", "x", 1, 1), run("a", "y", 1, 2), run("a", "y", 4, 2),
                                  run("a", "z", 1.5, 3)};
  rows.push_back(run("b", "x", 1, 1));  // two plans: pairs for the calibration, no rank
  rows.push_back(run("b", "y", 2, 1.5));
  auto failed = run("a", "w", 1, 1);
  failed.error = "no";
  rows.push_back(failed);
  auto unknown = run("a", "v", 1, 9);
  unknown.facts.plan_assumed = true;
  rows.push_back(unknown);
  const RankAgreement rank = rank_agreement(rows);
  REQUIRE(rank.groups.size() == 1);
  CHECK(rank.groups.front().plans == 3);
  CHECK(rank.groups.front().spearman == doctest::Approx(0.5));
  CHECK(rank.mean_spearman == doctest::Approx(0.5));
  CHECK(rank.pairs == 3);
  CHECK(rank.pairs_right_pct == doctest::Approx(200.0 / 3));
  // x to y: 2 for 2; x to z: 3 for 1.5; y to z: 1.5 for 0.75.
  CHECK(rank.ratio_error_pct == doctest::Approx(100 * 2 * std::log(2) / 3));
  int pairs = 0;
  double right = 0;
  for (const auto& bin : rank.calibration) {
    CHECK(bin.mean_probability >= bin.from);
    CHECK(bin.mean_probability <= bin.to);
    pairs += bin.pairs;
    right += bin.pairs * bin.right_pct / 100;
  }
  CHECK(pairs == 4);
  CHECK(right == doctest::Approx(3));
}

TEST_CASE("groups weigh by their plans") {
  std::vector<ValidationRow> rows;
  for (int i = 1; i <= 6; ++i) rows.push_back(run("a", std::to_string(i), i, i));
  for (int i = 1; i <= 3; ++i) rows.push_back(run("b", std::to_string(i), i, 4 - i));
  const RankAgreement rank = rank_agreement(rows);
  CHECK(rank.mean_spearman == doctest::Approx((6 * 1 + 3 * -1) / 9.0));
  CHECK(rank.pairs_right_pct == doctest::Approx(100.0 * 15 / 18));
}

TEST_CASE("the plan predicted fastest is right where it is measured within 3 % of the fastest") {
  std::vector<ValidationRow> rows{run("a", "x", 1.02, 5), run("a", "y", 1, 6), run("a", "z", 2, 7),
                                  run("b", "x", 1.5, 5), run("b", "y", 1, 6)};
  rows.push_back(run("c", "x", 1, 1));  // one plan: nothing to choose
  rows.push_back(run("d", "x", 1, 1));  // predicted equal: the slower counts
  rows.push_back(run("d", "y", 1.25, 1));
  const RankAgreement rank = rank_agreement(rows);
  REQUIRE(rank.choices.size() == 3);
  const FirstChoice &a = rank.choices[0], &b = rank.choices[1], &d = rank.choices[2];
  CHECK(a.right());
  CHECK(a.plans == 3);
  CHECK(a.fastest == 2);
  CHECK(a.loss_pct == doctest::Approx(2));
  CHECK_FALSE(b.right());
  CHECK(b.predicted == "x");
  CHECK(b.measured == "y");
  CHECK(b.loss_pct == doctest::Approx(50));
  CHECK(d.loss_pct == doctest::Approx(25));
  const ChoiceFigures f = figures_of(rank.choices);
  CHECK(f.workloads == 3);
  CHECK(f.right == 1);
  CHECK(f.right_pct == doctest::Approx(100.0 / 3));
  CHECK(f.by_chance_pct == doctest::Approx(100 * (2.0 / 3 + 0.5 + 0.5) / 3));
  CHECK(f.mean_loss_pct == doctest::Approx(77.0 / 3));
  CHECK(f.largest_loss_pct == doctest::Approx(50));
  CHECK(figures_of(std::vector<FirstChoice>{}).workloads == 0);
}

TEST_CASE("a bias that all plans share leaves the spread between pairs alone") {
  std::vector<ValidationRow> rows;
  CHECK_FALSE(pair_spread_of(rows));
  for (int i = 1; i <= 6; ++i) rows.push_back(run("a", std::to_string(i), 2.0 * i, i));
  CHECK(*pair_spread_of(rows) == doctest::Approx(1e-6));
  for (auto& row : rows) row.measured *= row.facts.plan == "6" ? std::exp(0.2353) : 1;
  CHECK(*pair_spread_of(rows) == doctest::Approx(0.1).epsilon(1e-3));
}

}  // namespace rank_agreement_test
