#include "costmodel/plan/peak_errors.hpp"

#include <doctest/doctest.h>

#include <cmath>

namespace peak_errors_test {

using namespace costmodel;

namespace {

// Peaks are a hundredth larger than predicted, half of them.
const PeakErrors errors{std::log(1.01), 0.05, true, ""};
const Bytes peak(50e9);

}  // namespace

TEST_CASE("the chance of fitting is even at the median, and rises with the capacity") {
  CHECK(fits_probability(peak, peak * 1.01, errors) == doctest::Approx(0.5));
  double before = 0;
  for (const double capacity : {20e9, 40e9, 48e9, 50e9, 50.6e9, 55e9, 80e9, 800e9}) {
    const double chance = fits_probability(peak, Bytes(capacity), errors);
    CHECK(chance > before);
    CHECK(chance < 1);
    before = chance;
  }
  CHECK(fits_probability(peak, Bytes(0), errors) == 0);
  CHECK(fits_probability(Bytes(0), peak, errors) == 1);
}

TEST_CASE("a wider distribution is less sure of both: what fits and what does not") {
  PeakErrors wide = errors;
  wide.scale *= 2;
  CHECK(fits_probability(peak, peak * 1.2, wide) < fits_probability(peak, peak * 1.2, errors));
  CHECK(fits_probability(peak, peak * 0.8, wide) > fits_probability(peak, peak * 0.8, errors));
}

TEST_CASE("a plan that leaves the margin of a confidence fits with just that chance") {
  for (const double confidence : {0.6, 0.8, 0.9, 0.99}) {
    const double margin = memory_margin(confidence, errors);
    CHECK(fits_probability(peak * (1 - margin), peak, errors) == doctest::Approx(confidence));
  }
  CHECK(memory_margin(0.99, errors) > memory_margin(0.9, errors));
  // What is predicted beyond the memory does not fit, however little is asked for.
  CHECK(memory_margin(0.1, errors) == 0);
  CHECK(memory_margin(0, errors) == 0);
}

}  // namespace peak_errors_test
