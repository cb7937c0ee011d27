// The numbers that tensors are filled with, in memory that the host may not touch.
#include "calibrate/measure/random_block.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "tests/calibrate/support/simulated_gpu.hpp"
#include "tests/runtime/support/far_memory.hpp"

namespace random_block_test {

using calibrate::RandomBlock;
using runtime::Number;
using runtime::Vector;

namespace {

// A vector of device memory as floats.
std::vector<float> numbers_of(runtime::Memory& memory, const Vector& vector) {
  std::vector<std::byte> bytes(vector.bytes());
  memory.read(vector.data, bytes);
  std::vector<float> values;
  runtime::in_format(vector.number, [&](auto zero) {
    using T = decltype(zero);
    for (const T value : Vector(bytes.data(), vector.size, vector.number).as<T>())
      values.push_back(static_cast<float>(value));
  });
  return values;
}

Vector filled(FarMemory& memory, RandomBlock& block, std::size_t size, Number number) {
  const Vector vector{memory.allocate(size * bytes_of(number)), size, number};
  block.fill(vector);
  return vector;
}

}  // namespace

TEST_CASE("tensors are filled with normal numbers in each format") {
  FarMemory memory;
  RandomBlock block(memory, 40'000);
  for (const Number number : {Number::f32, Number::bf16, Number::f16}) {
    const auto values = numbers_of(memory, filled(memory, block, 100'000, number));
    double sum = 0, squares = 0, largest = 0;
    for (const float value : values) {
      sum += value;
      squares += static_cast<double>(value) * value;
      largest = std::max(largest, std::abs(static_cast<double>(value)));
    }
    const auto n = static_cast<double>(values.size());
    CHECK(std::abs(sum / n) < 0.02);  // of 40,000 different ones: four standard errors
    CHECK(squares / n == doctest::Approx(1).epsilon(0.03));
    CHECK(largest > 3);
    CHECK(largest <= 6);
    CHECK(std::ranges::count(values, 0.0F) <= 1);
  }
}

TEST_CASE("no tensor is a copy of another") {
  FarMemory memory;
  RandomBlock block(memory, 4096);
  std::vector<std::vector<float>> all;
  for (const std::size_t size : {4096, 4096, 4096, 8192, 8192})
    all.push_back(numbers_of(memory, filled(memory, block, size, Number::bf16)));
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      std::size_t same = 0;
      for (std::size_t k = 0; k < 4096; ++k) same += all[i][k] == all[j][k] ? 1 : 0;
      CHECK(same < 4096 / 10);
    }
  }
}

TEST_CASE("the host draws once, whatever is filled; the device copies") {
  simulated_gpu::Clock clock;
  simulated_gpu::Memory memory(clock);
  {
    RandomBlock block(memory);
    const std::size_t elements = 1'000'000'000;
    for (int i = 0; i < 3; ++i) block.fill({memory.allocate(2 * elements), elements, Number::bf16});
    CHECK(memory.written.size() == 1);
    CHECK(memory.copied == 3 * 2e9);
    const double once = 2 * 2.0 * RandomBlock::usual / simulated_gpu::Clock::written;
    CHECK(clock.now < 3 * 2e9 / simulated_gpu::Clock::written * 1.5 + once);
    block.fill({nullptr, 0, Number::f16});  // nothing
  }
  CHECK(memory.held == 3 * 2e9);  // the block is gone
}

}  // namespace random_block_test
