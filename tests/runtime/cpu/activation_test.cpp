#include "runtime/cpu/activation.hpp"

#include <doctest/doctest.h>

#include "runtime/cpu/math.hpp"
#include "tests/runtime/support/cpu_gradients.hpp"

namespace activation_test {

using namespace cpu_test;
namespace cpu = runtime::cpu;
using costmodel::Activation;

TEST_CASE("GELU is x (1 + tanh(√(2/π) (x + 0.044715 x³))) / 2") {
  const Doubles x{-3, -1, -0.1, 0, 0.1, 1, 3};
  auto y = unset(7);
  cpu::activation_forward<double>({1, 7, false, true}, x, y);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double u = std::sqrt(2 / 3.14159265358979323846) * (x[i] + 0.044715 * x[i] * x[i] * x[i]);
    CHECK(y[i] == doctest::Approx(0.5 * x[i] * (1 + std::tanh(u))).epsilon(1e-13));
  }
}

TEST_CASE("SwiGLU is silu of the left half of a row times its right half") {
  const Doubles x{1, -2, 3, 4};  // one row: gates 1 and -2
  auto y = unset(2);
  cpu::activation_forward<double>({1, 2, true, true}, x, y);
  CHECK(y[0] == doctest::Approx(3 / (1 + std::exp(-1.0))).epsilon(1e-14));
  CHECK(y[1] == doctest::Approx(-8 / (1 + std::exp(2.0))).epsilon(1e-14));
}

TEST_CASE("the gradient of an activation is its finite differences") {
  for (const bool gated : {false, true}) {
    const Activation op{3, 19, gated, true};
    const std::int64_t inputs = gated ? 114 : 57;
    auto x = normals(inputs, 1);
    const auto dy = normals(57, 2);
    const auto loss = [&] {
      auto y = unset(57);
      cpu::activation_forward<double>(op, x, y);
      return dot(y, dy);
    };
    auto dx = unset(inputs);
    cpu::activation_input_gradient<double>(op, x, dy, dx);
    CHECK(distance(dx, differences(x, loss)) < difference_bound);
  }
}

TEST_CASE("an activation in float is that in double, forward and backward") {
  for (const bool gated : {false, true}) {
    const Activation op{5, 50, gated, true};
    const std::int64_t inputs = gated ? 500 : 250;
    const auto x = normals(inputs, 1), dy = normals(250, 2);
    auto y = unset(250), dx = unset(inputs);
    auto y_narrow = unset<float>(250), dx_narrow = unset<float>(inputs);
    cpu::activation_forward<double>(op, x, y);
    cpu::activation_input_gradient<double>(op, x, dy, dx);
    cpu::activation_forward(op, to<float>(x), y_narrow);
    cpu::activation_input_gradient(op, to<float>(x), to<float>(dy), dx_narrow);
    CHECK(distance(y_narrow, y) < float_bound);
    CHECK(distance(dx_narrow, dx) < float_bound);
  }
}

TEST_CASE("the exponential of floats is within two units in the last place, from end to end") {
  double worst = 0;
  for (float x = -87.0F; x < 88.0F; x += 0.00371F) {
    const double exact = std::exp(static_cast<double>(x));
    worst = std::max(worst, std::abs(static_cast<double>(cpu::exponential(x)) / exact - 1));
  }
  CHECK(worst < 2 * 0x1p-23);
  CHECK(cpu::exponential(0.0F) == 1.0F);
  CHECK(cpu::exponential(-100.0F) == 0.0F);
  CHECK(cpu::exponential(-std::numeric_limits<float>::infinity()) == 0.0F);
  CHECK(cpu::exponential(100.0F) == std::numeric_limits<float>::infinity());
  CHECK(std::isnan(cpu::exponential(std::numeric_limits<float>::quiet_NaN())));
}

}  // namespace activation_test
