#include "planner/accuracy/residual_fit.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>

#include "costmodel/config/yaml.hpp"
#include "planner/accuracy/scorecard.hpp"
#include "tests/run_program.hpp"

namespace residual_fit_test {

using namespace planner;

namespace {

// A run whose residual is `left_out` when its source is left out, and the same when more is.
FittedRun run(const std::string& source, double left_out) {
  FittedRun run{source, source, {}, {}};
  run.traits.stack = "stack";
  run.traits.device = "device";
  run.traits.family = "gpt";
  run.traits.devices = 8;
  run.traits.parameters = 1e9;
  run.errors.fill(-left_out);
  run.errors[static_cast<std::size_t>(FittedTo::fewer_devices)] = NAN;
  run.errors[static_cast<std::size_t>(FittedTo::smaller_models)] = NAN;
  return run;
}

// Sources whose residuals spread evenly over -0.1 ... 0.1.
RefitResult even_sources(int sources) {
  RefitResult result;
  for (int s = 0; s < sources; ++s) {
    for (int i = 0; i <= 40; ++i)
      result.runs.push_back(run("s" + std::to_string(s), 0.005 * (i - 20)));
  }
  return result;
}

double log_width(const costmodel::KindResiduals& kind) { return kind.high - kind.low; }

}  // namespace

TEST_CASE("a quantile counts weights") {
  CHECK(weighted_quantile({}, 0.5) == 0);
  CHECK(weighted_quantile({{3, 1}}, 0.9) == 3);
  CHECK(weighted_quantile({{4, 1}, {1, 1}, {2, 1}, {3, 1}}, 0.5) == 2);
  CHECK(weighted_quantile({{1, 1}, {2, 8}, {3, 1}}, 0.85) == 2);
}

TEST_CASE("percentiles of many like sources are their own, and hold nine runs in ten") {
  const auto table = fit_residuals(even_sources(40), 0.1);
  REQUIRE(table);
  const auto& dense = table->of(false);
  CHECK(dense.count.sources == 40);
  CHECK(dense.low == doctest::Approx(-0.09).epsilon(0.2));
  CHECK(dense.high == doctest::Approx(0.09).epsilon(0.4));  // a part of the default band
  CHECK(dense.covered >= 88);
  CHECK(table->unseen.by_source.size() == 40);
  CHECK(table->of(true).count.runs == 0);
  CHECK_FALSE(fit_residuals({}, 0.1));
}

TEST_CASE("few sources are held by the default band, and one far off widens it") {
  const auto few = fit_residuals(even_sources(2), 0.1), many = fit_residuals(even_sources(20), 0.1);
  CHECK(log_width(few->of(false)) > 1.5 * log_width(many->of(false)));
  RefitResult off = even_sources(5);
  for (int i = 0; i < 41; ++i) off.runs.push_back(run("far", 0.6));
  CHECK(fit_residuals(off, 0.1)->of(false).high >
        1.5 * fit_residuals(even_sources(5), 0.1)->of(false).high);
}

TEST_CASE("a source of many runs does not decide alone") {
  RefitResult grid = even_sources(40);
  // More than a tenth of the runs; less when a source counts as the power 0.9 of its runs.
  for (int i = 0; i < 200; ++i) grid.runs.push_back(run("grid", i % 2 == 0 ? 0.3 : -0.3));
  CHECK(fit_residuals(grid, 0.1)->of(false).high < 0.2);
}

TEST_CASE("mixtures of experts have percentiles of their own, drawn to those of dense models") {
  RefitResult both = even_sources(10);
  for (int s = 0; s < 3; ++s) {
    for (int i = 0; i <= 40; ++i) {
      both.runs.push_back(run("e" + std::to_string(s), 0.015 * (i - 20)));
      both.runs.back().traits.experts = true;
    }
  }
  const auto table = fit_residuals(both, 0.1);
  CHECK(table->of(true).count.runs == 123);
  CHECK(log_width(table->of(true)) > 1.5 * log_width(table->of(false)));
  CHECK(table->of(true).covered > 85);
}

TEST_CASE("stacks of one code have a band of their own where eight sources ran them") {
  const auto bands = [](int near) {
    RefitResult result = even_sources(near);
    for (auto& run : result.runs) run.traits.lineage = "near";
    for (int s = 0; s < 12; ++s) {
      for (int i = 0; i <= 40; ++i)
        result.runs.push_back(run("f" + std::to_string(s), 0.02 * (i - 20)));
    }
    return fit_residuals(result, 0.1)->of(false);
  };
  CHECK(bands(7).lineages.empty());
  const auto all = bands(10);
  const auto& near = all.lineages.at("near");
  CHECK(near.count.sources == 10);
  CHECK(near.count.runs == 410);
  CHECK(near.high - near.low < 0.6 * log_width(all));
  CHECK(near.covered > 88);
  CHECK(all.covered > 85);
}

TEST_CASE("what leaving out a device costs is how much wider a new device is") {
  RefitResult result = even_sources(10);
  for (auto& run : result.runs)
    run.errors[static_cast<std::size_t>(FittedTo::other_devices)] *= 1.5;
  const auto table = fit_residuals(result, 0.1);
  CHECK(table->widening.device == doctest::Approx(1.5));
  CHECK(table->widening.stack == 1);
  costmodel::RunTraits traits = result.runs.front().traits;
  const double known = std::log(band_of(*table, traits).high);
  traits.device = "new";
  CHECK(std::log(band_of(*table, traits).high) == doctest::Approx(1.5 * known));
}

// Other golden files rest on this one, so it is checked, and written anew, before them. Leaving out
// every source takes a minute, so the check is of the figure that says for which predictions the
// table is.
TEST_CASE("configs/residuals.yaml is of the predictions as they are") {
  const program::Scratch scratch;
  const std::string source = SHARDPLAN_SOURCE_DIR;
  const std::string file = source + "/configs/residuals.yaml";
  if (std::getenv("SHARDPLAN_UPDATE_GOLDEN") != nullptr) {
    const auto done = program::run({"validate", source + "/configs/evidence", "--peaks",
                                    source + "/configs/evidence/extra/pytorch-h100.yaml",
                                    "--write-residuals", file, "--out", "report.txt"},
                                   scratch);
    CHECK(done.status == 0);
  }
  const auto table = costmodel::read_residuals(costmodel::load_yaml(file));
  const costmodel::ConfigPath path{{source + "/configs"}};
  CHECK(scorecard_of(validate({source + "/configs/evidence"}, path), &table).unseen == &table);
  const auto& dense = table.of(false);
  const auto& experts = table.of(true);
  CHECK(std::abs(dense.covered - 90) <= 3);
  // Within the central 95 % of a binomial distribution.
  CHECK(std::abs(experts.covered - 90) <= 1.96 * 30 / std::sqrt(experts.count.runs) + 0.1);
  const auto& unseen = table.unseen;
  // What is reached, rounded up; five of the sources decide no constant in any fit.
  CHECK(unseen.source.sources <= 8.9);
  CHECK(unseen.source.dense <= 7.2);
  CHECK(unseen.source.experts_by_run <= 12.1);
  CHECK(unseen.family.sources <= 10.0);
  CHECK(unseen.device.sources <= 10.3);
}

}  // namespace residual_fit_test
