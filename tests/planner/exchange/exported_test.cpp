// A refused plan is told at the place of the key that breaks the rule.
#include "planner/exchange/exported.hpp"

#include <doctest/doctest.h>

#include "tests/costmodel/support/scenarios.hpp"

namespace exported_test {

TEST_CASE("the first violation is thrown, at its key; none throws nothing") {
  const auto s = scenarios::read(scenarios::tiny +
                                 "cluster: {base: laptop-cpu, devices: 4}\n"
                                 "plan: {dp: 4, zero: 1}\n");
  CHECK_NOTHROW(planner::refuse_first({}, s));
  const auto told = fixtures::config_error([&] {
    planner::refuse_first({{"zero", "wrong", "set zero: 0"}, {"dp", "too", "set dp: 1"}}, s);
  });
  CHECK(told.starts_with("test.yaml:4:"));
  CHECK(told.ends_with("wrong; set zero: 0"));
}

}  // namespace exported_test
