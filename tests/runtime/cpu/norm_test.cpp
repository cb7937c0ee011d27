#include "runtime/cpu/norm.hpp"

#include <doctest/doctest.h>

#include <stdexcept>

#include "runtime/cpu/qk_norm.hpp"
#include "tests/runtime/support/cpu_gradients.hpp"

namespace norm_test {

using namespace cpu_test;
namespace cpu = runtime::cpu;
using costmodel::Norm;
using costmodel::Normalization;

namespace {

Doubles shift_for(Normalization kind, std::int64_t cols, std::uint64_t stream) {
  return kind == Normalization::layernorm ? normals(cols, stream) : Doubles{};
}

}  // namespace

TEST_CASE("LayerNorm gives rows of mean 0 and variance 1, and RMSNorm of mean square 1") {
  const auto x = normals(2 * 50, 1), gain = Doubles(50, 1.0), shift = zeros(50);
  for (const auto kind : {Normalization::layernorm, Normalization::rmsnorm}) {
    auto y = unset(100), statistics = unset(2 * cpu::norm_figures(kind));
    const bool layer = kind == Normalization::layernorm;
    cpu::norm_forward<double>({2, 50, kind}, x, gain, layer ? shift : Doubles{}, y, statistics);
    for (std::size_t row = 0; row < 2; ++row) {
      double sum = 0, squares = 0;
      for (std::size_t i = 50 * row; i < 50 * row + 50; ++i) {
        sum += y[i];
        squares += y[i] * y[i];
      }
      if (layer) CHECK(std::abs(sum / 50) < 1e-14);
      CHECK(std::abs(squares / 50 - 1) < 1e-4);  // epsilon beside a variance of about 1
    }
  }
}

TEST_CASE("the gradients of a norm are its finite differences") {
  for (const auto kind : {Normalization::layernorm, Normalization::rmsnorm}) {
    const Norm op{3, 21, kind};
    auto x = normals(63, 1), gain = normals(21, 2), shift = shift_for(kind, 21, 3);
    const auto dy = normals(63, 4);
    auto y = unset(63), statistics = unset(3 * cpu::norm_figures(kind));
    const auto loss = [&] {
      cpu::norm_forward<double>(op, x, gain, shift, y, statistics);
      return dot(y, dy);
    };
    loss();
    auto dx = unset(63), dgain = zeros(21), dshift = Doubles(shift.size());
    cpu::norm_input_gradient<double>(op, x, gain, statistics, dy, dx);
    cpu::norm_weight_gradient<double>(op, x, statistics, dy, dgain, dshift);
    CHECK(distance(dx, differences(x, loss)) < difference_bound);
    CHECK(distance(dgain, differences(gain, loss)) < difference_bound);
    if (!shift.empty()) CHECK(distance(dshift, differences(shift, loss)) < difference_bound);
  }
}

TEST_CASE("a norm in float is that in double, forward and backward") {
  for (const auto kind : {Normalization::layernorm, Normalization::rmsnorm}) {
    const Norm op{3, 70, kind};
    const auto x = normals(210, 1), gain = normals(70, 2), shift = shift_for(kind, 70, 3);
    const auto run = [&]<class T>(T) {
      auto y = unset<T>(210), dx = y, statistics = unset<T>(3 * cpu::norm_figures(kind));
      cpu::norm_forward<T>(op, to<T>(x), to<T>(gain), to<T>(shift), y, statistics);
      cpu::norm_input_gradient<T>(op, to<T>(x), to<T>(gain), statistics, y, dx);
      return std::pair(y, dx);
    };
    const auto wide = run(0.0);
    const auto narrow = run(0.0F);
    CHECK(distance(narrow.first, wide.first) < float_bound);
    CHECK(distance(narrow.second, wide.second) < 2 * float_bound);
  }
}

TEST_CASE("weight gradients of a norm are added to what is there") {
  const Norm op{2, 5, Normalization::layernorm};
  const auto x = normals(10, 1), gain = normals(5, 2), dy = normals(10, 3);
  auto y = unset(10), statistics = unset(4);
  cpu::norm_forward<double>(op, x, gain, gain, y, statistics);
  auto once_gain = zeros(5), once_shift = zeros(5);
  cpu::norm_weight_gradient<double>(op, x, statistics, dy, once_gain, once_shift);
  auto twice_gain = once_gain, twice_shift = once_shift;
  cpu::norm_weight_gradient<double>(op, x, statistics, dy, twice_gain, twice_shift);
  for (std::size_t i = 0; i < 5; ++i) {
    CHECK(twice_gain[i] == doctest::Approx(2 * once_gain[i]).epsilon(1e-14));
    CHECK(twice_shift[i] == doctest::Approx(2 * once_shift[i]).epsilon(1e-14));
  }
}

TEST_CASE("RMSNorm has no shift, and LayerNorm needs one") {
  const std::vector<float> x(4), gain(2);
  auto y = zeros<float>(4), statistics = zeros<float>(2), four = y;
  CHECK_THROWS_AS(cpu::norm_forward({2, 2, Normalization::rmsnorm}, x, gain, gain, y, statistics),
                  std::invalid_argument);
  CHECK_THROWS_AS(cpu::norm_forward({2, 2, Normalization::layernorm}, x, gain, {}, y, four),
                  std::invalid_argument);
}

TEST_CASE(
    "the norm of queries and keys has the gradients of finite differences, and leaves values") {
  const cpu::HeadLayout layout{2, 3, 4, 2, 6};
  const std::int64_t size = layout.tokens() * layout.columns();
  for (const auto kind : {Normalization::layernorm, Normalization::rmsnorm}) {
    const Norm op{layout.tokens() * 6, 6, kind, 2};
    auto qkv = normals(size, 1), q_gain = normals(6, 2), k_gain = normals(6, 3);
    auto q_shift = shift_for(kind, 6, 4), k_shift = shift_for(kind, 6, 5);
    const cpu::QkVectors<const double> weights{q_gain, k_gain, q_shift, k_shift};
    const auto dy = normals(size, 6);
    auto y = unset(size);
    const auto loss = [&] {
      cpu::qk_norm_forward<double>(op, layout, qkv, weights, y);
      return dot(y, dy);
    };
    loss();
    CHECK(std::equal(y.end() - 12, y.end(), qkv.end() - 12));
    auto dqkv = unset(size), dq = zeros(6), dk = zeros(6);
    Doubles dq_shift(q_shift.size()), dk_shift(k_shift.size());
    cpu::qk_norm_input_gradient<double>(op, layout, qkv, weights, dy, dqkv);
    cpu::qk_norm_weight_gradient<double>(op, layout, qkv, dy, {dq, dk, dq_shift, dk_shift});
    CHECK(distance(dqkv, differences(qkv, loss)) < difference_bound);
    CHECK(distance(dq, differences(q_gain, loss)) < difference_bound);
    CHECK(distance(dk, differences(k_gain, loss)) < difference_bound);
    if (kind == Normalization::rmsnorm) continue;
    CHECK(distance(dq_shift, differences(q_shift, loss)) < difference_bound);
    CHECK(distance(dk_shift, differences(k_shift, loss)) < difference_bound);
  }
}

}  // namespace norm_test
