#include "planner/accuracy/runs_known.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "tests/planner/support/drawn_sites.hpp"
#include "tests/sanitized.hpp"

namespace runs_known_test {

using namespace planner;
using costmodel::Seconds;

namespace {

// Sources of one site each; the usual interval is that of a normal distribution of both parts.
std::vector<SourceRun> drawn_sources(const SitePrior& prior, int sources, int runs) {
  drawn::Normal normal;
  std::vector<SourceRun> all;
  for (int s = 0; s < sources; ++s) {
    for (const SiteRun& run : drawn::site(prior, runs, normal))
      all.push_back({"s" + std::to_string(s), "site", run, -0.3, 0.3});
  }
  return all;
}

constexpr int many = sanitized ? 10 : 40;

}  // namespace

TEST_CASE("where sites differ more than their runs, two known runs help") {
  const SitePrior differ{{0.15}, 0.03, 0.2, 1, 1};
  const RunsKnown known = runs_known(drawn_sources(differ, many, 8), 2, 2);
  CHECK(known.by_source.size() == many);
  CHECK(known.mean.runs == 8 * many);
  CHECK(known.mean.time < 0.5 * known.mean.none);
  CHECK(known.better > 3 * many / 4);
  CHECK(known.mean.width < 0.3);
  CHECK(known.mean.covered > 82);
  CHECK(known.prior.spreads[0] == doctest::Approx(0.15).epsilon(0.4));
}

TEST_CASE("where they do not, two known runs do no harm to speak of") {
  const SitePrior alike{{1e-4}, 0.1, 0.2, 1, 1};
  const RunsKnown known = runs_known(drawn_sources(alike, many, 8), 2, 2);
  CHECK(known.mean.time < 1.05 * known.mean.none);
  CHECK(known.mean.covered == doctest::Approx(90).epsilon(0.06));
}

TEST_CASE("the answer does not depend on the number of threads") {
  const auto runs = drawn_sources({{0.05}, 0.07, 0.5, 1, 1}, 6, 5);
  const RunsKnown one = runs_known(runs, 2, 1), four = runs_known(runs, 2, 4);
  CHECK(one.mean.time == four.mean.time);
  CHECK(one.mean.width == four.mean.width);
  CHECK(one.prior.stretch_high == four.prior.stretch_high);
}

TEST_CASE("a source of too few runs is told and not counted") {
  auto runs = drawn_sources({{0.05}, 0.07, 0.5, 1, 1}, 4, 5);
  runs.push_back({"small", "site", {0.1, {1}}, -0.3, 0.3});
  const RunsKnown known = runs_known(runs, 2, 1);
  CHECK(known.small == std::vector<std::string>{"small"});
  CHECK(known.by_source.size() == 4);
  CHECK(runs_known(runs, 9, 1).by_source.empty());
}

TEST_CASE("shares of the constants: waits count as the work of their stage") {
  costmodel::Breakdown b;
  b.compute = Seconds(6);
  b.tp_comm = Seconds(2);
  b.bubble = Seconds(4);
  b.dp_comm = Seconds(1);
  b.other = Seconds(3);
  const auto shares = site_shares(b);
  CHECK(shares[0] == 1);
  CHECK(shares[1] == doctest::Approx(2 * 1.5 / 16));
  CHECK(shares[2] == doctest::Approx(1.0 / 16));
  CHECK(shares[3] == doctest::Approx(3.0 / 16));
  CHECK(site_shares({})[0] == 1);
}

TEST_CASE("what a table of residuals keeps of a prior is that prior") {
  RunsKnown known;
  known.by_source["a"];
  known.prior = {{0.04}, 0.07, 0.6, 0.8, 1.7};
  const costmodel::SiteSpread kept = site_spread(known);
  CHECK(kept.sources == 1);
  const SitePrior again = site_prior(kept);
  CHECK(again.spreads == known.prior.spreads);
  CHECK(again.noise == 0.07);
  CHECK(again.noise_spread == 0.6);
  CHECK(again.stretch_low == 0.8);
  CHECK(again.stretch_high == 1.7);
}

TEST_CASE("source runs pair each row with its left-out error") {
  ValidationRow row;
  row.id = "a";
  row.source = "s";
  row.quantity = "iteration_s";
  row.measured = 1.1;
  row.predicted = 1;
  row.interval = costmodel::Interval{Seconds(0.8), Seconds(1.5)};
  row.breakdown = costmodel::Breakdown{};
  row.breakdown->compute = Seconds(1);
  RefitResult fitted;
  FittedRun run{"a", "s", {}, {}};
  run.errors.fill(NAN);
  fitted.runs = {run};
  CHECK(source_runs({row}, fitted).empty());
  fitted.runs[0].errors[static_cast<std::size_t>(FittedTo::other_sources)] = -0.07;
  const auto runs = source_runs({row}, fitted);
  REQUIRE(runs.size() == 1);
  CHECK(runs[0].run.residual == 0.07);
  CHECK(runs[0].usual_low == doctest::Approx(std::log(0.8)));
  CHECK(runs[0].run.shares[1] == 0);
}

}  // namespace runs_known_test
