#include "planner/accuracy/serving_residuals.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

using namespace planner;

namespace {

constexpr std::array<std::array<double, 2>, 4> no_interval{{{1, 1}, {1, 1}, {1, 1}, {1, 1}}};

ServingRun measured_at(const std::string& source, const std::vector<double>& ratios,
                       ServingMetric metric = ServingMetric::throughput) {
  ServingRun run;
  run.source = source;
  for (const double ratio : ratios) run.figures.push_back({metric, ratio, 1});
  return run;
}

}  // namespace

TEST_CASE("Student's 95th percentiles are those of printed tables") {
  // NIST/SEMATECH e-Handbook of Statistical Methods, section 1.3.6.7.2.
  for (const auto& [degrees, printed] : {std::pair<std::size_t, double>{1, 6.314},
                                         {2, 2.920},
                                         {3, 2.353},
                                         {5, 2.015},
                                         {9, 1.833},
                                         {30, 1.697},
                                         {100000, 1.645}})
    CHECK(student_95(degrees) == doctest::Approx(printed).epsilon(0.003));
}

TEST_CASE("An interval is the formula of its header, and few sources widen it") {
  const std::vector<ServingRun> two{measured_at("a", {0.8, 0.8}), measured_at("b", {1.25, 1.25})};
  const auto interval = serving_intervals(two, "", no_interval)[0];
  // The means are ∓0.223, so B is (0.0996 + its own 0.0996) / 2, and nothing lies within.
  const double b = 2 * std::pow(std::log(1.25), 2);
  const double half = student_95(2) * std::sqrt(b * 1.5);
  CHECK(interval[0] == doctest::Approx(std::exp(-half)));
  CHECK(interval[1] == doctest::Approx(std::exp(half)));
  const std::vector<ServingRun> four{measured_at("a", {0.8}), measured_at("b", {1.25}),
                                     measured_at("c", {0.8}), measured_at("d", {1.25})};
  CHECK(serving_intervals(four, "", no_interval)[0][1] < interval[1]);
}

TEST_CASE("An interval holds nine tenths of what was seen, whatever the tails") {
  std::vector<ServingRun> runs;
  for (const char* name : {"a", "b", "c", "d", "e", "f", "g", "h"})
    runs.push_back(measured_at(name, std::vector<double>(20, 1.0)));
  std::vector<double> skewed(20, 1.0);
  std::fill_n(skewed.begin(), 12, 0.3);
  runs.push_back(measured_at("i", skewed));
  const auto interval = serving_intervals(runs, "", no_interval)[0];
  CHECK(interval[0] <= 0.3 * (1 + 1e-12));
}

TEST_CASE("A metric of one source has the others' spread; of none, what was there") {
  const std::vector<ServingRun> runs{measured_at("a", {0.9}), measured_at("b", {1.1}),
                                     measured_at("a", {1.0}, ServingMetric::tpot)};
  const auto all = serving_intervals(runs, "", no_interval);
  CHECK(all[1][0] < 1);
  CHECK(all[1][1] > 1);
  CHECK(all[2] == no_interval[2]);
  CHECK(serving_intervals({}, "", no_interval)[0] == no_interval[0]);
}

TEST_CASE("What is covered rests on the other sources, and low confidence counts nowhere") {
  std::vector<ServingRun> runs{measured_at("a", {1.0, 1.02}), measured_at("b", {0.97}),
                               measured_at("c", {1.05})};
  CHECK(covered(runs, ServingMetric::throughput) == 1);
  runs.push_back(measured_at("far", {40}));
  CHECK(covered(runs, ServingMetric::throughput) < 1);
  runs.back().confidence = "low";
  CHECK(covered(runs, ServingMetric::throughput) == 1);
  CHECK(covered({}, ServingMetric::ttft) == 0);
}

TEST_CASE("A fit says how many sources its intervals rest on") {
  costmodel::ServingFit fit;
  set_intervals({measured_at("a", {1.0}), measured_at("b", {1.2})}, fit);
  CHECK(fit.basis.find("2 published measurements of 2 sources") != std::string::npos);
  CHECK(fit.intervals[0][1] > 1.2);
}
