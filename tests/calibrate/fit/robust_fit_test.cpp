#include "calibrate/fit/robust_fit.hpp"

#include <doctest/doctest.h>

#include <cmath>

namespace robust_fit_test {

using calibrate::Bounded;
using calibrate::fit_robustly;
using calibrate::quantile;

TEST_CASE("a curve is found from far off, within its bounds") {
  const auto y = [](double x) { return 3 * x / (x + 40); };
  const auto residual = [&](const std::vector<double>& v, std::size_t i) {
    const double x = 5.0 * static_cast<double>(i + 1);
    return std::log(v[0] * x / (x + v[1]) / y(x));
  };
  const auto fit = fit_robustly({{1, 0.1, 10}, {0, 0, 1000}}, 30, residual);
  CHECK(fit.values[0] == doctest::Approx(3).epsilon(1e-5));
  CHECK(fit.values[1] == doctest::Approx(40).epsilon(1e-5));
  CHECK(fit.mean_error < 1e-6);
  const auto bounded = fit_robustly({{1, 0.1, 2}, {0, 0, 1000}}, 30, residual);
  CHECK(bounded.values[0] == 2);
  CHECK(fit_robustly({{1, 0.1, 10}, {0, 0, 1000}}, 30, residual).values == fit.values);
}

TEST_CASE("a mean with a tenth of the points wrong stays by the others") {
  const auto residual = [](const std::vector<double>& v, std::size_t i) {
    return v[0] - (i % 10 == 0 ? 1e6 : 5 + 0.01 * std::sin(static_cast<double>(i)));
  };
  const auto fit = fit_robustly({{0, -1e9, 1e9}}, 100, residual);
  CHECK(fit.values[0] == doctest::Approx(5).epsilon(0.001));
}

TEST_CASE("a parameter without influence stays where it is") {
  const auto residual = [](const std::vector<double>& v, std::size_t) { return v[0] - 2; };
  CHECK(fit_robustly({{1, 0, 9}, {7, 0, 9}}, 4, residual).values == std::vector<double>{2, 7});
}

TEST_CASE("quantiles") {
  CHECK(quantile({}, 0.5) == 0);
  CHECK(quantile({4, 1, 3}, 0.5) == 3);
  CHECK(quantile({0, 10}, 0.9) == doctest::Approx(9));
}

}  // namespace robust_fit_test
