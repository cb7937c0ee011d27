#include "planner/accuracy/residual_fit.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/run_program.hpp"

namespace residual_fit_test {

using namespace planner;

namespace {

ValidationRow run(const std::string& source, const std::string& device, double residual) {
  ValidationRow row{"run", source, "iteration_s", std::exp(residual), 1, {}, "", {}};
  row.facts.stack = "stack";
  row.facts.device = device;
  return row;
}

std::string contents(const std::string& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

}  // namespace

TEST_CASE("quantiles, and a spread that one outlier leaves alone") {
  CHECK(quantile({}, 0.5) == 0);
  CHECK(quantile({3}, 0.9) == 3);
  CHECK(quantile({4, 1, 2, 3}, 0.5) == doctest::Approx(2.5));
  CHECK(quantile({4, 1, 2, 3}, 0.05) == doctest::Approx(1.15));
  std::vector<double> values;
  for (int i = 0; i <= 20; ++i) values.push_back(0.1 * i);
  const double spread = robust_spread(values);
  CHECK(spread == doctest::Approx(1.6 / 2.563));
  values.back() = 100;
  CHECK(robust_spread(values) == doctest::Approx(spread));
}

TEST_CASE("residuals are summed up by kind; each source of a kind counts once for all") {
  std::vector<ValidationRow> rows;
  for (int i = 0; i < 50; ++i) rows.push_back(run("many", "a", 0.1 + 0.002 * (i - 24.5)));
  rows.push_back(run("few", "b", 0.3));
  auto failed = run("few", "b", 5);
  failed.error = "no";
  rows.push_back(failed);
  const auto table = fit_residuals(rows);
  REQUIRE(table);
  const auto& many = table->kinds.at({"stack", "a"});
  CHECK(many.runs == 50);
  CHECK(many.mean == doctest::Approx(0.1));
  REQUIRE(many.range);
  CHECK(many.range->first == doctest::Approx(0.1 - 0.002 * (24.5 - 0.05 * 49)));
  CHECK_FALSE(table->kinds.at({"stack", "b"}).range);
  CHECK(table->all.mean == doctest::Approx(0.2));
  CHECK(table->all.runs == 51);
  CHECK(table->stacks.at("stack").sources == 2);
  CHECK(fit_residuals(rows, "many")->kinds.size() == 1);
  CHECK_FALSE(fit_residuals({failed}));
}

TEST_CASE("a source left out is judged by the others") {
  std::vector<ValidationRow> rows;
  for (int i = 0; i < 20; ++i) {
    rows.push_back(run("a", "x", 0.005 * (i - 10)));
    rows.push_back(run("b", "x", 0.005 * (i - 10)));
  }
  CHECK(left_out_coverage(rows).at("") > 85);
  for (int i = 0; i < 20; ++i) rows.push_back(run("far", "x", 2));
  const auto coverage = left_out_coverage(rows);
  CHECK(coverage.at("far") == 0);
  CHECK(coverage.size() == 4);
  CHECK(left_out_coverage({run("a", "x", 0)}).empty());
}

// Other golden files rest on this one, so it is checked, and written anew, before them.
TEST_CASE("configs/residuals.yaml is what validate writes") {
  const program::Scratch scratch;
  const std::string source = SHARDPLAN_SOURCE_DIR;
  const auto done = program::run({"validate", source + "/configs/evidence", "--write-residuals",
                                  "mine.yaml", "--out", "report.txt"},
                                 scratch);
  CHECK(done.status == 0);
  const std::string real = scratch.read("mine.yaml");
  CHECK(real.size() > 1000);
  const std::string file = source + "/configs/residuals.yaml";
  if (std::getenv("SHARDPLAN_UPDATE_GOLDEN") != nullptr) std::ofstream(file) << real;
  CHECK(contents(file) == real);
}

}  // namespace residual_fit_test
