#include "runtime/cpu/dropout.hpp"

#include <doctest/doctest.h>

#include <stdexcept>

#include "tests/runtime/support/cpu_gradients.hpp"

namespace dropout_test {

namespace cpu_dropout_test {

using namespace cpu_test;
namespace cpu = runtime::cpu;
using costmodel::BiasDropoutAdd;

namespace {

using Bytes = std::vector<std::uint8_t>;

Bytes mask_of(std::int64_t rows, std::int64_t cols, double p, const cpu::DropoutKey& key) {
  Bytes mask(static_cast<std::size_t>(rows * cols), 9);
  cpu::dropout_mask(rows, cols, p, key, mask);
  return mask;
}

}  // namespace

TEST_CASE("the mask of a slice of a tensor is the slice of its mask") {
  const Bytes whole = mask_of(11, 23, 0.4, {5, 6, 0, 0, 23});
  for (const std::int64_t first_row : {0, 4})
    for (const std::int64_t first_col : {0, 1, 6, 15}) {
      const Bytes part = mask_of(7, 8, 0.4, {5, 6, first_row, first_col, 23});
      for (std::int64_t row = 0; row < 7; ++row)
        for (std::int64_t col = 0; col < 8; ++col)
          REQUIRE(part[static_cast<std::size_t>(row * 8 + col)] ==
                  whole[static_cast<std::size_t>((first_row + row) * 23 + first_col + col)]);
    }
  CHECK(whole != mask_of(11, 23, 0.4, {5, 7, 0, 0, 23}));
  CHECK(whole != mask_of(11, 23, 0.4, {6, 6, 0, 0, 23}));
}

TEST_CASE("a mask drops the share that was asked for") {
  for (const double p : {0.0, 0.1, 0.5, 0.9}) {
    const Bytes mask = mask_of(200, 500, p, {1, 2, 0, 0, 500});
    const auto dropped = static_cast<double>(std::count(mask.begin(), mask.end(), 0));
    CHECK(std::abs(dropped / 1e5 - p) <= 4 * std::sqrt(p * (1 - p) / 1e5));
    CHECK(std::count(mask.begin(), mask.end(), 1) == 100000 - static_cast<long>(dropped));
  }
}

TEST_CASE("dropout divides what it keeps by 1 - p, forward and backward") {
  const Doubles x{1, 2, 3, 4, 5, 6, 7, 8};
  Bytes mask(8);
  auto y = unset(8), dx = unset(8);
  cpu::dropout_forward<double>({2, 4}, x, 0.5, {3, 0, 0, 0, 4}, y, mask);
  cpu::dropout_gradient<double>({2, 4}, x, mask, 0.5, dx);
  for (std::size_t i = 0; i < 8; ++i) CHECK(y[i] == 2 * x[i] * mask[i]);
  CHECK(dx == y);
  CHECK(std::count(mask.begin(), mask.end(), 1) % 8 != 0);  // some kept, some dropped
}

TEST_CASE("the gradients of bias-dropout-add are its finite differences") {
  for (const bool dropout : {false, true}) {
    const BiasDropoutAdd op{5, 7, true, dropout, true};
    const cpu::DropoutKey key{1, 2, 3, 4, 50};
    auto x = normals(35, 1), bias = normals(7, 2), skip = normals(35, 3);
    const auto dy = normals(35, 4);
    Bytes mask(dropout ? 35 : 0);
    const double p = dropout ? 0.3 : 0;
    const auto loss = [&] {
      auto y = unset(35);
      cpu::bias_dropout_add_forward<double>(op, x, bias, skip, p, key, y, mask);
      return dot(y, dy);
    };
    loss();
    auto dx = unset(35), dbias = zeros(7);
    cpu::bias_dropout_add_input_gradient<double>(op, dy, mask, p, dx);
    cpu::bias_dropout_add_weight_gradient<double>(op, dy, mask, p, dbias);
    CHECK(distance(dx, differences(x, loss)) < difference_bound);
    CHECK(distance(dbias, differences(bias, loss)) < difference_bound);
    CHECK(distance(dy, differences(skip, loss)) < difference_bound);
  }
}

TEST_CASE("bias-dropout-add without a bias adds none, in float as in double") {
  const BiasDropoutAdd op{2, 40, false, true, true};
  const auto x = normals(80, 1), skip = normals(80, 2);
  Bytes mask(80), mask_narrow(80);
  auto y = unset(80);
  auto narrow = unset<float>(80);
  cpu::bias_dropout_add_forward<double>(op, x, {}, skip, 0.25, {1, 2, 0, 0, 40}, y, mask);
  cpu::bias_dropout_add_forward(op, to<float>(x), {}, to<float>(skip), 0.25, {1, 2, 0, 0, 40},
                                narrow, mask_narrow);
  for (std::size_t i = 0; i < 80; ++i)
    CHECK(y[i] == doctest::Approx(skip[i] + x[i] * mask[i] / 0.75).epsilon(1e-14));
  CHECK(mask == mask_narrow);
  CHECK(distance(narrow, y) < float_bound);
}

TEST_CASE("dropout refuses probabilities that leave nothing") {
  Bytes mask(1);
  for (const double p : {-0.1, 1.0, std::numeric_limits<double>::quiet_NaN()})
    CHECK_THROWS_AS(cpu::dropout_mask(1, 1, p, {1, 2, 0, 0, 1}, mask), std::invalid_argument);
}

}  // namespace cpu_dropout_test

}  // namespace dropout_test
