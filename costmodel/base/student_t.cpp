#include "costmodel/base/student_t.hpp"

#include <cmath>
#include <limits>
#include <numbers>

namespace costmodel {

double student_t3(double t) {
  const double x = t / std::numbers::sqrt3;
  return 0.5 + (x / (1 + x * x) + std::atan(x)) / std::numbers::pi;
}

double student_t3_quantile(double probability) {
  constexpr double infinite = std::numeric_limits<double>::infinity();
  if (probability <= 0) return -infinite;
  if (probability >= 1) return infinite;
  if (probability < 0.5) return -student_t3_quantile(1 - probability);
  double low = 0, high = 1;
  while (student_t3(high) < probability && high < 1e6) high *= 2;
  constexpr int halvings = 80;  // down to the last bit of a double
  for (int i = 0; i < halvings; ++i) {
    const double middle = (low + high) / 2;
    (student_t3(middle) < probability ? low : high) = middle;
  }
  return high;
}

double student_t3_log_density(double t) {
  return std::log(2 / (std::numbers::pi * std::numbers::sqrt3)) - 2 * std::log1p(t * t / 3);
}

}  // namespace costmodel
