// How far results may be from exact ones, by the number of roundings alone: whatever the order of a
// sum, the processor, the library that multiplies, and with fused multiply-adds or without.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "runtime/backend/number_format.hpp"

namespace rounding {

// A format's unit roundoff: half the distance from 1 to the next number.
template <class T>
inline constexpr double unit = std::numeric_limits<T>::epsilon() / 2;
template <>
inline constexpr double unit<runtime::Bf16> = 0x1p-8;
template <>
inline constexpr double unit<runtime::F16> = 0x1p-11;

// What `count` roundings make of a term at most, relative to it. At worst n u / (1 - n u) (Higham,
// Accuracy and Stability of Numerical Algorithms, lemma 3.1); of roundings up and down by chance
// 8 √n u / (1 - n u), but for once in 10^13 (Higham and Mary, A New Approach to Probabilistic
// Rounding Error Analysis, 2019, theorem 2.4 with λ = 8).
inline double gamma(double count, double u) {
  return std::min(count, 8 * std::sqrt(count)) * u / (1 - count * u);
}

// Of a result in T beside the definition, which is itself computed in double.
template <class T>
double beside_definition(double count) {
  return gamma(count, unit<T>) + gamma(count, unit<double>);
}

// The largest error of an element, in units of what it may be: `share` of its amount, the sum of
// the absolute values of its terms. Infinite where anything is NaN or the sizes differ.
template <class A, class B>
double excess(const std::vector<A>& found, const std::vector<B>& expected,
              const std::vector<double>& amounts, double share) {
  constexpr double infinite = std::numeric_limits<double>::infinity();
  if (found.size() != expected.size() || found.size() != amounts.size()) return infinite;
  double worst = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const double error = std::abs(static_cast<double>(found[i]) - static_cast<double>(expected[i]));
    if (std::isnan(error)) return infinite;
    if (error > 0) worst = std::max(worst, error / (share * amounts[i]));
  }
  return worst;
}

}  // namespace rounding
