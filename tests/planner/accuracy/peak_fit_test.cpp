#include "planner/accuracy/peak_fit.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "tests/run_program.hpp"

namespace peak_fit_test {

using namespace planner;

namespace {

ValidationRow row(const std::string& source, const std::string& stack, const char* quantity) {
  ValidationRow r;
  r.id = source;
  r.source = source;
  r.quantity = quantity;
  r.facts.stack = stack;
  return r;
}

// Of a peak of e^`error` times what is predicted.
ValidationRow peak(const std::string& source, const std::string& stack, double error) {
  ValidationRow r = row(source, stack, "peak_memory_bytes");
  r.predicted = 10e9;
  r.measured = r.predicted * std::exp(error);
  return r;
}

ValidationRow outcome(const std::string& source, const std::string& stack, double predicted,
                      bool ran) {
  ValidationRow r = row(source, stack, "fits");
  r.peak = predicted;
  r.capacity = 80e9;
  r.measured = ran ? 1 : 0;
  return r;
}

}  // namespace

TEST_CASE("the Brier score of three runs, by hand") {
  const BrierScore score = brier_score({{0.9, true, "a"}, {0.6, true, "a"}, {0.3, false, "b"}});
  CHECK(score.runs == 3);
  CHECK(score.out_of_memory == 1);
  CHECK(score.all == doctest::Approx((0.01 + 0.16 + 0.09) / 3));
  CHECK(score.over_sources == doctest::Approx(((0.01 + 0.16) / 2 + 0.09) / 2));
  CHECK(score.of_misfits == doctest::Approx(0.09));
  CHECK(brier_score({}).runs == 0);
}

TEST_CASE("errors that are spread evenly have their median in the middle") {
  std::vector<ValidationRow> rows;
  for (int i = -5; i <= 5; ++i) rows.push_back(peak("a", "s", 0.1 + 0.02 * i));
  const auto peaks = fit_peaks(rows);
  REQUIRE(peaks);
  CHECK(peaks->all.middle == doctest::Approx(0.1).epsilon(1e-6));
  CHECK(peaks->all.scale > 0.03);
  CHECK(peaks->all.scale < 0.07);
  CHECK(peaks->stacks.at("s").count.runs == 11);
  CHECK(peaks->unmeasured == 1);  // no source is left to judge by
  CHECK_FALSE(fit_peaks({outcome("a", "s", 70e9, true)}));
}

TEST_CASE("a source weighs the same, however many runs it has; a stack is drawn to all") {
  std::vector<ValidationRow> rows;
  for (int i = 0; i < 100; ++i) rows.push_back(peak("many", "s", 0.02 + 0.0001 * (i % 2)));
  for (const char* source : {"b", "c", "d"})
    for (int i = 0; i < 2; ++i) rows.push_back(peak(source, "t", -0.02 + 0.0001 * i));
  const auto peaks = fit_peaks(rows);
  REQUIRE(peaks);
  CHECK(peaks->all.middle < 0);  // three sources against one
  CHECK(peaks->stacks.at("s").middle > peaks->all.middle);
  CHECK(peaks->stacks.at("s").middle < 0.02);
}

TEST_CASE("runs out of memory that others' peaks call fitting make a new stack's chance wider") {
  std::vector<ValidationRow> rows;
  for (const char* source : {"a", "b", "c"})
    for (int i = -2; i <= 2; ++i) rows.push_back(peak(source, "s", 0.01 * i));
  const auto narrow = fit_peaks(rows);
  rows.push_back(outcome("d", "new", 70e9, false));
  rows.push_back(outcome("e", "newer", 90e9, true));
  const auto wide = fit_peaks(rows);
  REQUIRE(narrow);
  REQUIRE(wide);
  CHECK(wide->unmeasured > narrow->unmeasured);
  CHECK(wide->all.scale == narrow->all.scale);
}

TEST_CASE("each source is judged by the peaks of the others") {
  std::vector<ValidationRow> rows;
  for (const char* source : {"a", "b"})
    for (int i = -2; i <= 2; ++i) rows.push_back(peak(source, "s", 0.01 * i));
  const std::vector<ValidationRow> others = rows;
  for (int i = 0; i < 5; ++i) rows.push_back(peak("c", "s", -0.5));  // what c itself measured
  rows.push_back(outcome("c", "s", 79e9, true));
  const auto chances = left_out_chances(rows);
  REQUIRE(chances.size() == 1);
  const auto by_others = fit_peaks(others);
  CHECK(chances[0].chance ==
        doctest::Approx(costmodel::fits_probability(costmodel::Bytes(79e9), costmodel::Bytes(80e9),
                                                    peak_errors_of(*by_others, "s"))));
}

TEST_CASE("chances are counted in bins, each run once") {
  const auto bins =
      chance_bins({{0, false, "a"}, {0.5, true, "a"}, {0.97, true, "a"}, {1, true, "a"}});
  int runs = 0;
  for (const ChanceBin& bin : bins) runs += bin.runs;
  CHECK(runs == 4);
  CHECK(bins.back().runs == 2);
  CHECK(bins.back().ran == 1);
  CHECK(bins.front().ran == 0);
}

// The program's own figures: what the issue asks of a chance, and what the table is of.
TEST_CASE("the chance of fitting of published runs, each source by the others") {
  const costmodel::ConfigPath path{{std::string(SHARDPLAN_SOURCE_DIR) + "/configs"}};
  const auto rows = validate({std::string(SHARDPLAN_SOURCE_DIR) + "/configs/evidence"}, path);
  const BrierScore score = brier_score(left_out_chances(rows));
  CHECK(score.runs > 1000);
  CHECK(score.all < 0.1);
  CHECK(score.over_sources < 0.1);
}

}  // namespace peak_fit_test
