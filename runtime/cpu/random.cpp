#include "runtime/cpu/random.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>

#include "runtime/cpu/clones.hpp"
#include "runtime/cpu/lanes.hpp"

namespace runtime::cpu {

namespace {

// No function below branches, so that compilers compute several elements at once; every operation
// is exact or the same for every element.

// (a, b) as a number in (0, 1] with 53 bits.
[[gnu::always_inline]] inline double uniform(std::uint32_t a, std::uint32_t b) {
  const auto high = static_cast<std::int32_t>(a >> 1U);                    // 31 bits
  const auto low = static_cast<std::int32_t>((a & 1U) << 21U | b >> 11U);  // 22 bits
  return (high * 0x1p22 + (low + 1)) * 0x1p-53;
}

// ln x for x in (0, 1], by the series of the inverse hyperbolic tangent; the standard library's may
// differ between machines in the last bit.
[[gnu::always_inline]] inline double logarithm(double x) {
  // x = m · 2^exponent with m in [sqrt(1/2), sqrt(2)), from the bits of the number.
  constexpr auto root = std::bit_cast<std::uint64_t>(std::numbers::sqrt2 / 2);
  constexpr std::uint64_t one = 1ULL << 52U, bias = 1024;  // a power of two; keeps it positive
  const auto bits = std::bit_cast<std::uint64_t>(x);
  const std::uint64_t biased = (bits - root + bias * one) >> 52U;
  const auto m = std::bit_cast<double>(bits - (biased - bias) * one);
  const int exponent = static_cast<int>(biased) - static_cast<int>(bias);
  const double t = (m - 1) / (m + 1), square = t * t;  // square < 0.03
  double sum = 0;
#pragma GCC unroll 12
  for (int k = 23; k >= 1; k -= 2) sum = sum * square + 1.0 / k;
  return 2 * t * sum + exponent * std::numbers::ln2;
}

// cos(2πu) for u in (0, 1], by Taylor's series about the nearest multiple of π/2: a cosine's about
// an even multiple, a sine's about an odd one, which has one term less.
[[gnu::always_inline]] inline double cosine_of_turn(double u) {
  // As std::lround, which does not vectorise: 4u + 1/2 is exact where it matters, u being positive.
  const int quarter = static_cast<int>(4 * u + 0.5);  // NOLINT(bugprone-incorrect-roundings)
  const double angle = (4 * u - quarter) * (std::numbers::pi / 2);  // within π/4
  const double odd = quarter & 1, even = 1 - odd, square = -angle * angle;
  double term = even + odd * angle, sum = term;
#pragma GCC unroll 8
  for (int k = 1; k < 17; k += 2) {
    term *= square / (k * (k + 1) + odd * (2 * (k + 1)));  // k (k + 1), or (k + 1)(k + 2)
    sum += term;
  }
  sum += even * (term * (square / (17 * 18)));
  return sum * (1 - ((quarter + 1) & 2));  // -cos about π, -sin about π/2
}

// The squared radii and the cosines of `lanes` elements.
struct Polar {
  std::array<double, lanes> squares, cosines;
};

RUNTIME_CLONES void draw(std::uint64_t seed, std::uint64_t stream, std::uint64_t first,
                         Polar& drawn) {
  for (std::size_t i = 0; i < lanes; ++i) {
    const PhiloxCounter words = random_block(seed, stream, first + i);
    drawn.squares[i] = -2 * logarithm(uniform(words[0], words[1]));
    drawn.cosines[i] = cosine_of_turn(uniform(words[2], words[3]));
  }
}

}  // namespace

float normal(std::uint64_t seed, std::uint64_t stream, std::uint64_t index) {
  float value = 0;
  normals(seed, stream, index, {&value, 1});
  return value;
}

void normals(std::uint64_t seed, std::uint64_t stream, std::uint64_t first,
             std::span<float> values) {
  Polar drawn;  // NOLINT(*-member-init)
  for (std::size_t at = 0; at < values.size(); at += lanes) {
    draw(seed, stream, first + at, drawn);
    const std::size_t count = std::min<std::size_t>(lanes, values.size() - at);
    for (std::size_t i = 0; i < count; ++i)  // std::sqrt may set errno: a loop of its own
      values[at + i] = static_cast<float>(std::sqrt(drawn.squares[i]) * drawn.cosines[i]);
  }
}

}  // namespace runtime::cpu
