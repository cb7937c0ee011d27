#include "runtime/cpu/random.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <set>

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
