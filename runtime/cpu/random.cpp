#include "runtime/cpu/random.hpp"

#include <cmath>
#include <numbers>

namespace runtime::cpu {

namespace {

// (a, b) as a number in (0, 1] with 53 bits.
double uniform(std::uint32_t a, std::uint32_t b) {
  const std::uint64_t bits = (std::uint64_t{a} << 32U | b) >> 11U;
  return static_cast<double>(bits + 1) * 0x1p-53;
}

// ln x for x in (0, 1], by the series of the inverse hyperbolic tangent; the standard library's may
// differ between machines in the last bit.
double logarithm(double x) {
  int exponent = 0;
  double m = std::frexp(x, &exponent);  // in [1/2, 1)
  if (m < std::numbers::sqrt2 / 2) {
    m *= 2;
    --exponent;
  }
  const double t = (m - 1) / (m + 1), square = t * t;  // square < 0.03
  double sum = 0;
  for (int k = 23; k >= 1; k -= 2) sum = sum * square + 1.0 / k;
  return 2 * t * sum + exponent * std::numbers::ln2;
}

// cos(2πu) for u in [0, 1], by Taylor's series about the nearest multiple of π/2.
double cosine_of_turn(double u) {
  const int quarter = static_cast<int>(std::lround(4 * u));
  const double angle = (4 * u - quarter) * (std::numbers::pi / 2);  // within π/4
  const bool odd = quarter % 2 != 0;                                // then a sine
  double term = odd ? angle : 1.0, sum = term;
  for (int k = odd ? 2 : 1; k < 18; k += 2) {
    term *= -angle * angle / (k * (k + 1));
    sum += term;
  }
  return quarter == 1 || quarter == 2 ? -sum : sum;
}

}  // namespace

float normal(std::uint64_t seed, std::uint64_t stream, std::uint64_t index) {
  const PhiloxCounter words = random_block(seed, stream, index);
  const double radius = std::sqrt(-2 * logarithm(uniform(words[0], words[1])));
  return static_cast<float>(radius * cosine_of_turn(uniform(words[2], words[3])));
}

}  // namespace runtime::cpu
