#include "costmodel/plan/length_spec.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "costmodel/config/yaml.hpp"

using namespace costmodel;

namespace {

std::vector<double> many(const LengthSpec& length) {
  Draws draws;
  std::vector<double> all(20'000);
  for (double& one : all) one = drawn(length, draws);
  std::ranges::sort(all);
  return all;
}

double mean(const std::vector<double>& all) {
  double sum = 0;
  for (const double one : all) sum += one;
  return sum / static_cast<double>(all.size());
}

LengthSpec read(const char* yaml) {
  return read_length(parse_yaml(yaml, "test.yaml"), "sample_tokens");
}

}  // namespace

TEST_CASE("log-normal lengths have the mean and the 95th percentile that are asked for") {
  const auto all = many({.mean = 500, .p95 = 1500});
  CHECK(std::abs(mean(all) / 500 - 1) <= 0.03);
  CHECK(std::abs(all[all.size() * 95 / 100] / 1500 - 1) <= 0.05);
  CHECK(all.front() >= 1);
}

TEST_CASE("uniform lengths lie between their ends, equal ones are all the mean") {
  const auto all = many({.mean = 150, .least = 100, .most = 200});
  CHECK(all.front() >= 100);
  CHECK(all.back() <= 200);
  CHECK(std::abs(mean(all) / 150 - 1) <= 0.02);
  const auto alike = many({.mean = 300});
  CHECK(alike.front() == 300);
  CHECK(alike.back() == 300);
}

TEST_CASE(
    "quantiles: the median and the 95th percentile of a log-normal, places between two ends") {
  CHECK(length_quantile({.mean = 500, .p95 = 1500}, 0.95) == 1500);
  // exp(-sigma²/2) of the mean, sigma = 1.645 - sqrt(1.645² - 2 ln 3).
  CHECK(length_quantile({.mean = 500, .p95 = 1500}, 0.5) == doctest::Approx(324).epsilon(0.002));
  CHECK(length_quantile({.mean = 150, .least = 100, .most = 200}, 0.25) == 125);
  CHECK(length_quantile({.mean = 300}, 0.01) == 300);
  CHECK(normal_quantile(0.5) == 0);
  CHECK(normal_quantile(0.975) == doctest::Approx(1.959964));
}

TEST_CASE("lengths are read as a number, a mean with a percentile, or two ends") {
  CHECK(read("512").mean == 512);
  const LengthSpec skewed = read("{mean: 500, p95: 1500}");
  CHECK(skewed.mean == 500);
  CHECK(skewed.p95 == 1500);
  const LengthSpec flat = read("{min: 100, max: 300}");
  CHECK(flat.mean == 200);
  CHECK(flat.most == 300);
  CHECK_THROWS_AS(read("{mean: 500, p95: 400}"), ConfigError);    // below the mean
  CHECK_THROWS_AS(read("{mean: 500, p95: 50000}"), ConfigError);  // no log-normal has that
  CHECK_THROWS_AS(read("{min: 500, max: 400}"), ConfigError);
  CHECK_THROWS_AS(read("0"), ConfigError);
}
