#include "planner/accuracy/robust_step.hpp"

#include <doctest/doctest.h>

#include <cmath>

namespace robust_step_test {

using namespace planner;

TEST_CASE("the loss is a parabola near zero, then linear, then flat") {
  CHECK(robust_loss(0.2) - robust_loss(0.1) == doctest::Approx(0.1));
  CHECK(robust_loss(-0.2) == robust_loss(0.2));
  CHECK(robust_loss(0.02) == doctest::Approx(0.02));
  CHECK(robust_loss(0.01) - robust_loss(0) == doctest::Approx(0.01 * 0.01 / 0.04));
  CHECK(robust_loss(5) == robust_loss(0.6));
}

TEST_CASE("one constant moves to the median of the errors, and no run far off pulls it") {
  const StepVariable v{{{0, 1}, {1, 1}, {2, 1}, {3, 1}, {4, 1}}, 0, 0, -1, 1};
  const auto step = robust_step({0.1, 0.1, 0.1, -0.3, 3}, {1, 1, 1, 1, 1}, {v});
  CHECK(step.front() == doctest::Approx(-0.1).epsilon(0.1));
  CHECK(robust_step({0.1, 0.1, -0.2, -0.2, -0.2}, {1, 1, 0, 0, 0}, {v}).front() ==
        doctest::Approx(-0.1));
}

TEST_CASE("bounds and priors hold a constant") {
  StepVariable v{{{0, 1}}, 0, 0, -0.05, 1};
  CHECK(robust_step({0.1}, {1}, {v}).front() == doctest::Approx(-0.05));
  v.low = -1;
  v.spread = 1e-3;
  CHECK(std::abs(robust_step({0.1}, {1}, {v}).front()) < 1e-3);
  v.from_prior = 0.2;  // back to its prior
  CHECK(robust_step({0}, {0}, {v}).front() == doctest::Approx(-0.2));
}

TEST_CASE("two constants that only two runs together tell apart are both found") {
  // e0 = 0.2 - (x + y), e1 = 0.1 - (x + 0.5 y): x = 0, y = 0.2
  const StepVariable x{{{0, -1}, {1, -1}}, 0, 0, -1, 1}, y{{{0, -1}, {1, -0.5}}, 0, 0, -1, 1};
  const auto step = robust_step({0.2, 0.1}, {1, 1}, {x, y});
  CHECK(step[0] == doctest::Approx(0).epsilon(0.01));
  CHECK(step[1] == doctest::Approx(0.2).epsilon(0.01));
}

}  // namespace robust_step_test
