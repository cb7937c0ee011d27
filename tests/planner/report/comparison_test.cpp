// What differs between scenarios, and why one is faster.
#include "planner/report/comparison.hpp"

#include <doctest/doctest.h>

#include "costmodel/config/override.hpp"
#include "costmodel/config/yaml.hpp"
#include "costmodel/estimate/plan_estimate.hpp"
#include "costmodel/plan/plan_keys.hpp"
#include "tests/costmodel/support/fixtures.hpp"

namespace comparison_test {

using namespace planner;
using costmodel::Seconds;
using fixtures::contains;

namespace {

Compared column(const std::string& name, const std::vector<std::string>& assignments) {
  const auto path = fixtures::configs();
  const auto file = costmodel::scenario_file("tiny-gpt-cpu", path);
  costmodel::Value root = costmodel::load_yaml(file);
  for (const auto& assignment : assignments) assign_path(root, assignment, {});
  auto scenario = costmodel::read_scenario(root, file, path);
  const auto plan = resolve_plan(scenario);
  auto estimate = estimate_of(scenario.model, scenario.cluster, scenario.training, plan);
  root.set("plan", to_value(plan));
  return {name, std::move(root), std::move(scenario), std::move(estimate)};
}

const std::string two_stages = "plan={pp: 2, dp: 2}", four_shards = "plan={tp: 4}";

double parts_of(const Table& rows, std::size_t column) {
  double sum = 0;
  for (const auto& row : rows.rows)
    if (row[0].ends_with(" (s)")) sum += std::stod(row[column]);
  return sum;
}

const std::string& cell(const Table& table, const std::string& name, std::size_t column) {
  for (const auto& row : table.rows)
    if (row[0] == name) return row[column];
  FAIL("no row " << name);
  return table.rows.front().front();
}

}  // namespace

TEST_CASE("only what differs is told, by its path") {
  const std::vector<Compared> same{column("a", {two_stages}), column("b", {two_stages})};
  CHECK(differences(same).empty());
  CHECK(contains(comparison_report(same, {}), "Nothing: the inputs are the same."));
  const auto plans = differences({column("a", {two_stages}), column("b", {four_shards})});
  CHECK(only_plans_differ(plans));
  std::vector<std::string> keys;
  for (const auto& row : plans) keys.push_back(row.key);
  for (const auto* key : {"plan.pp", "plan.tp", "plan.dp"})
    CHECK(std::ranges::count(keys, key) == 1);
  const auto inputs = differences(
      {column("a", {two_stages}), column("b", {two_stages, "training.global_batch=64"})});
  REQUIRE(inputs.size() == 1);
  CHECK(inputs.front().key == "training.global_batch");
  CHECK(inputs.front().values[1] == "64");
  CHECK_FALSE(only_plans_differ(inputs));
}

TEST_CASE("the parts of every column sum to its iteration, in every form of the report") {
  const std::vector<Compared> columns{column("stages", {two_stages}),
                                      column("shards", {four_shards})};
  const Table rows = comparison_rows(columns);
  const std::string text = comparison_report(columns, {});
  for (std::size_t i = 0; i < 2; ++i) {
    const double iteration = columns[i].estimate.iteration.value;
    CHECK(parts_of(rows, i + 1) == doctest::Approx(iteration).epsilon(1e-4));
    CHECK(std::stod(cell(rows, "iteration_s", i + 1)) == doctest::Approx(iteration).epsilon(1e-4));
    CHECK(contains(text, columns[i].name));
  }
}

TEST_CASE("a column compares by its own time, and has a chance where only plans differ") {
  const Compared slow = column("slow", {two_stages});
  Compared fast = slow;
  fast.name = "fast";
  fast.estimate.iteration.value /= 2;
  fast.estimate.tokens_per_s *= 2;
  fast.estimate.breakdown.compute.value -= slow.estimate.iteration.value / 2;
  const Against better = against(slow, fast, true);
  CHECK(better.speedup == doctest::Approx(2));
  CHECK(better.probability_faster > 0.9);
  CHECK(contains(better.sentence, "fast is 2.00 times as fast as slow"));
  CHECK(contains(better.sentence, "computation"));
  const Against worse = against(fast, slow, true);
  CHECK(contains(worse.sentence, "slow is 2.00 times as slow as fast"));
  CHECK(worse.probability_faster == doctest::Approx(1 - better.probability_faster));
  CHECK(against(slow, slow, false).probability_faster < 0);
  CHECK(contains(against(slow, slow, false).sentence, "as fast as slow"));
}

TEST_CASE("unlike batches are compared for the same tokens") {
  const Compared small = column("small", {two_stages, "training.global_batch=16"}),
                 large = column("large", {two_stages, "training.global_batch=64"});
  const Against told = against(small, large, false);
  CHECK(told.same_tokens.value == doctest::Approx(large.estimate.iteration.value / 4));
  CHECK(told.speedup == doctest::Approx(large.estimate.tokens_per_s / small.estimate.tokens_per_s));
  CHECK(contains(told.sentence, "for the same tokens"));
}

// tiny-gpt-cpu's sequences have 128 tokens: a sample of 32 leaves three quarters of one empty.
TEST_CASE("padding is no throughput: samples are compared by their own tokens") {
  const std::vector<std::string> samples{two_stages, "training.sample_tokens=32"};
  Compared padded = column("padded", samples), full = column("full", {two_stages});
  REQUIRE(padded.scenario.training.packing.filled ==
          doctest::Approx(32.0 / static_cast<double>(padded.scenario.training.sequence)));
  const double filled = padded.scenario.training.packing.filled;
  const Against told = against(full, padded, false);
  CHECK(told.speedup ==
        doctest::Approx(filled * padded.estimate.tokens_per_s / full.estimate.tokens_per_s));
  CHECK(contains(told.sentence, "for the same tokens of samples"));
  const Table rows = comparison_rows({full, padded});
  CHECK(std::stod(cell(rows, "sample_tokens_per_s", 2)) ==
        doctest::Approx(filled * padded.estimate.tokens_per_s).epsilon(1e-5));
  CHECK(contains(comparison_report({full, padded}, {}), "samples' tokens/s"));
}

TEST_CASE("a plan that does not fit is not a victory") {
  Compared fits = column("fits", {two_stages}), full = fits;
  full.name = "full";
  full.estimate.peak.value = 2 * full.estimate.capacity.value;
  CHECK(contains(against(fits, full, true).sentence, "But full does not fit."));
  CHECK(contains(against(full, fits, true).sentence, "But full does not fit."));
}

}  // namespace comparison_test
