#include "runtime/cpu/optimizer.hpp"

#include <doctest/doctest.h>

#include <stdexcept>

#include "tests/runtime/support/cpu_gradients.hpp"

namespace optimizer_test {

using namespace cpu_test;
namespace cpu = runtime::cpu;

TEST_CASE("two steps of AdamW are those worked out by hand") {
  Doubles params{1}, m{0}, v{0};
  const cpu::AdamW how{.lr = 0.1, .beta1 = 0.9, .beta2 = 0.99, .eps = 0.01, .weight_decay = 0.5};
  // m = 0.1 · 2 = 0.2, unbiased 2; v = 0.01 · 4 = 0.04, unbiased 4: 1 - 0.1 · (2 / 2.01 + 0.5).
  cpu::adamw<double>(params, Doubles{1}, m, v, how, 1, 2);
  CHECK(m[0] == doctest::Approx(0.2).epsilon(1e-14));
  CHECK(v[0] == doctest::Approx(0.04).epsilon(1e-14));
  CHECK(params[0] == doctest::Approx(0.85049751243781095).epsilon(1e-14));
  // m = 0.18 - 0.1 = 0.08, over 0.19; v = 0.0396 + 0.01 = 0.0496, over 0.0199.
  const double before = params[0];
  cpu::adamw<double>(params, Doubles{-1}, m, v, how, 2);
  const double step = 0.08 / 0.19 / (std::sqrt(0.0496 / 0.0199) + 0.01) + 0.5 * before;
  CHECK(params[0] == doctest::Approx(before - 0.1 * step).epsilon(1e-14));
}

TEST_CASE("two steps of gradient descent with momentum are those worked out by hand") {
  Doubles params{1}, velocity{0};
  const cpu::Sgd how{.lr = 0.1, .momentum = 0.5, .weight_decay = 0.2};
  cpu::sgd<double>(params, Doubles{1}, velocity, how, 2);  // 2 + 0.2 = 2.2
  CHECK(velocity[0] == doctest::Approx(2.2).epsilon(1e-14));
  CHECK(params[0] == doctest::Approx(0.78).epsilon(1e-14));
  cpu::sgd<double>(params, Doubles{1}, velocity, how);  // 1.1 + 1 + 0.156
  CHECK(params[0] == doctest::Approx(0.5544).epsilon(1e-14));
  cpu::sgd<double>(params, Doubles{1}, {}, {.lr = 0.1});
  CHECK(params[0] == doctest::Approx(0.4544).epsilon(1e-14));
}

TEST_CASE("optimizers in float are those in double") {
  const auto start = normals(100, 1), grads = normals(100, 2);
  const auto run = [&]<class T>(T) {
    auto params = to<T>(start), m = zeros<T>(100), v = zeros<T>(100), velocity = zeros<T>(100);
    for (std::int64_t step = 1; step <= 3; ++step) {
      cpu::adamw<T>(params, to<T>(grads), m, v, {.lr = 0.01, .weight_decay = 0.1}, step);
      cpu::sgd<T>(params, to<T>(grads), velocity, {.lr = 0.01, .momentum = 0.9});
    }
    return params;
  };
  CHECK(distance(run(0.0F), run(0.0)) < float_bound);
}

TEST_CASE("the sum of squares is exact to double, also of floats") {
  std::vector<float> grads(1001, 0.1F);
  const double each = static_cast<double>(0.1F);
  CHECK(cpu::sum_of_squares(grads) == doctest::Approx(1001 * each * each).epsilon(1e-14));
  CHECK(cpu::sum_of_squares(std::span<const float>{}) == 0);
}

TEST_CASE("optimizers refuse tensors of different sizes, a velocity that is missing, and step 0") {
  std::vector<float> two(2), one(1);
  CHECK_THROWS_AS(cpu::adamw(two, one, two, two, {.lr = 1}, 1), std::invalid_argument);
  CHECK_THROWS_AS(cpu::adamw(two, two, two, two, {.lr = 1}, 0), std::invalid_argument);
  CHECK_THROWS_AS(cpu::sgd(two, two, {}, {.lr = 1, .momentum = 0.5}), std::invalid_argument);
}

}  // namespace optimizer_test
