#include "costmodel/base/student_t.hpp"

#include <doctest/doctest.h>

#include <cmath>

namespace student_t_test {

using namespace costmodel;

TEST_CASE("tabled quantiles of Student's t of 3 degrees of freedom, and the way back") {
  // Student 1908; any table: one-sided 0.90, 0.95, 0.975, 0.99, 0.995.
  const double tabled[][2] = {
      {0.90, 1.638}, {0.95, 2.353}, {0.975, 3.182}, {0.99, 4.541}, {0.995, 5.841}};
  for (const auto& [probability, t] : tabled) {
    CHECK(student_t3(t) == doctest::Approx(probability).epsilon(1e-4));
    CHECK(student_t3_quantile(probability) == doctest::Approx(t).epsilon(1e-3));
    CHECK(student_t3_quantile(1 - probability) == doctest::Approx(-t).epsilon(1e-3));
  }
  CHECK(student_t3(0) == 0.5);
  CHECK(student_t3_quantile(0.5) == doctest::Approx(0));
  CHECK(std::isinf(student_t3_quantile(1)));
  CHECK(student_t3_quantile(0) < 0);
}

TEST_CASE("the density is the slope of the distribution") {
  constexpr double h = 1e-5;
  for (const double t : {-3.0, -0.5, 0.0, 1.0, 4.0}) {
    CHECK(std::exp(student_t3_log_density(t)) ==
          doctest::Approx((student_t3(t + h) - student_t3(t - h)) / (2 * h)).epsilon(1e-6));
  }
}

}  // namespace student_t_test
