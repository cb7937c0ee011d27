#include "runtime/cpu/random.hpp"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <numbers>
#include <set>
#include <span>
#include <vector>

namespace random_test {

namespace cpu = runtime::cpu;

TEST_CASE("Philox-4x32-10 gives the authors' known answers") {
  const std::uint32_t ones = 0xffffffff;
  CHECK(cpu::philox({0, 0, 0, 0}, {0, 0}) ==
        cpu::PhiloxCounter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(cpu::philox({ones, ones, ones, ones}, {ones, ones}) ==
        cpu::PhiloxCounter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(cpu::philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
        cpu::PhiloxCounter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("normal figures are Box and Muller's of the block's words") {
  for (std::uint64_t i = 0; i < 2000; ++i) {
    const auto words = cpu::random_block(3, 4, i);
    const auto uniform = [&](int at) {
      const auto left = static_cast<std::uint64_t>(words[static_cast<std::size_t>(at)]);
      const std::uint64_t bits = (left << 32U | words[static_cast<std::size_t>(at) + 1]) >> 11U;
      return static_cast<double>(bits + 1) / 9007199254740992.0;
    };
    const double expected =
        std::sqrt(-2 * std::log(uniform(0))) * std::cos(2 * 3.14159265358979323846 * uniform(2));
    CHECK(std::abs(static_cast<double>(cpu::normal(3, 4, i)) - expected) <
          1e-7 * std::max(1.0, std::abs(expected)));
  }
}

namespace {

double uniform_of(std::uint32_t a, std::uint32_t b) {
  const std::uint64_t bits = (std::uint64_t{a} << 32U | b) >> 11U;
  return static_cast<double>(bits + 1) * 0x1p-53;
}

// The formula one element at a time, with branches.
double logarithm_of(double x) {
  int exponent = 0;
  double m = std::frexp(x, &exponent);
  if (m < std::numbers::sqrt2 / 2) {
    m *= 2;
    --exponent;
  }
  const double t = (m - 1) / (m + 1), square = t * t;
  double sum = 0;
  for (int k = 23; k >= 1; k -= 2) sum = sum * square + 1.0 / k;
  return 2 * t * sum + exponent * std::numbers::ln2;
}

double cosine_of_turn(double u) {
  const int quarter = static_cast<int>(std::lround(4 * u));
  const double angle = (4 * u - quarter) * (std::numbers::pi / 2);
  const bool odd = quarter % 2 != 0;
  double term = odd ? angle : 1.0, sum = term;
  for (int k = odd ? 2 : 1; k < 18; k += 2) {
    term *= -angle * angle / (k * (k + 1));
    sum += term;
  }
  return quarter == 1 || quarter == 2 ? -sum : sum;
}

float one_by_one(std::uint64_t seed, std::uint64_t stream, std::uint64_t index) {
  const auto words = cpu::random_block(seed, stream, index);
  const double radius = std::sqrt(-2 * logarithm_of(uniform_of(words[0], words[1])));
  return static_cast<float>(radius * cosine_of_turn(uniform_of(words[2], words[3])));
}

}  // namespace

TEST_CASE("normal figures drawn several at a time are those of the formula, to the bit") {
  int other = 0;
  for (const std::uint64_t first : {0ULL, 7ULL, (1ULL << 32U) - 50, 1ULL << 63U}) {
    std::vector<float> drawn(first == 0 ? 500000 : 1000);
    cpu::normals(11, 1ULL << 40U, first, drawn);
    for (std::size_t i = 0; i < drawn.size(); ++i) {
      const float expected = one_by_one(11, 1ULL << 40U, first + i);
      other +=
          std::bit_cast<std::uint32_t>(drawn[i]) == std::bit_cast<std::uint32_t>(expected) ? 0 : 1;
    }
    CHECK(cpu::normal(11, 1ULL << 40U, first) == drawn.front());
  }
  CHECK(other == 0);
}

TEST_CASE("a row of normal figures is the same wherever it is cut") {
  std::vector<float> whole(333);
  cpu::normals(1, 2, 1000, whole);
  for (const std::size_t cut : {1U, 63U, 64U, 65U, 332U}) {
    std::vector<float> parts(whole.size());
    cpu::normals(1, 2, 1000, std::span(parts).first(cut));
    cpu::normals(1, 2, 1000 + cut, std::span(parts).subspan(cut));
    CHECK(parts == whole);
  }
}

TEST_CASE("normal figures have the moments of the normal distribution") {
  constexpr int n = 100000;
  double sum = 0, squares = 0, fourths = 0;
  for (std::uint64_t i = 0; i < n; ++i) {
    const auto x = static_cast<double>(cpu::normal(1, 2, i));
    sum += x;
    squares += x * x;
    fourths += x * x * x * x;
  }
  CHECK(std::abs(sum / n) < 4 / std::sqrt(n));  // four standard errors
  CHECK(std::abs(squares / n - 1) < 4 * std::sqrt(2.0 / n));
  CHECK(std::abs(fourths / n - 3) < 4 * std::sqrt(96.0 / n));
}

TEST_CASE("seeds, streams and indices draw different figures") {
  const std::set<float> drawn{cpu::normal(1, 1, 1),           cpu::normal(2, 1, 1),
                              cpu::normal(1, 2, 1),           cpu::normal(1, 1, 2),
                              cpu::normal(1, 1, 1ULL << 40U), cpu::normal(1, 1ULL << 40U, 1),
                              cpu::normal(1ULL << 40U, 1, 1)};
  CHECK(drawn.size() == 7);
}

}  // namespace random_test
