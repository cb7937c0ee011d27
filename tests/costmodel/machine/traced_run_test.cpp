#include "costmodel/machine/traced_run.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

namespace traced_run_test {

using costmodel::kind_factors;
using costmodel::TracedRun;
using costmodel::TracedShape;

namespace {

constexpr TracedShape shape{4096, 128, 8192, false, false, 32, 64};
constexpr std::size_t products = 0, attention = 1;

TracedRun run_of(double factor, double noise = 0.01) {
  TracedRun run{shape, {}, {}};
  run.kinds.fill(factor);
  run.noise.fill(noise);
  return run;
}

}  // namespace

TEST_CASE("without traces nothing changes") {
  for (const double factor : kind_factors({}, shape)) CHECK(factor == 1);
}

TEST_CASE("a run of the same shapes is as it was measured, one of others less so") {
  const std::vector<TracedRun> traces{run_of(1.2)};
  TracedShape longer = shape, narrow_heads = shape;
  longer.sequence = 131072;
  narrow_heads.head_dim = 32;
  const auto same = kind_factors(traces, shape), far = kind_factors(traces, longer),
             other = kind_factors(traces, narrow_heads);
  CHECK(same[products] > 1.15);
  CHECK(same[products] < 1.2);
  CHECK(far[products] > 1);
  CHECK(far[products] < same[products]);
  CHECK(other[products] == doctest::Approx(same[products]));  // products have no heads
  CHECK(other[attention] < same[attention]);
}

TEST_CASE("what one job is off by counts for others in part, what nobody expects for all") {
  TracedShape other = shape;
  other.layers = 16;
  const auto part = [&](double factor) {
    const std::vector<TracedRun> traces{run_of(factor)};
    return std::log(kind_factors(traces, other)[products]) /
           std::log(kind_factors(traces, shape)[products]);
  };
  CHECK(part(1.02) == doctest::Approx(0.4));
  CHECK(part(0.98) == doctest::Approx(0.4));
  CHECK(part(1.2) > 0.9);
  CHECK(part(1.2) < 1);
}

TEST_CASE("what was hardly measured hardly counts") {
  const std::vector<TracedRun> traces{run_of(1.2, 10)};
  CHECK(kind_factors(traces, shape)[products] == doctest::Approx(1).epsilon(1e-3));
}

TEST_CASE("traces of the same run that differ are averaged, in any order") {
  const std::vector<TracedRun> ab{run_of(1.1), run_of(1.3)}, ba{run_of(1.3), run_of(1.1)};
  const auto factors = kind_factors(ab, shape);
  CHECK(factors[products] > 1.1);
  CHECK(factors[products] < std::sqrt(1.1 * 1.3));
  CHECK(factors[products] == doctest::Approx(kind_factors(ba, shape)[products]));
}

}  // namespace traced_run_test
