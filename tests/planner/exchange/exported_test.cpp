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

TEST_CASE("settings by dotted names are nested maps") {
  CHECK(planner::nested_yaml(
            {{"a", "1"}, {"b.c.d", "2"}, {"b.c.e", "3"}, {"b.f", "4"}, {"g.c", "5"}}) ==
        "a: 1\nb:\n  c:\n    d: 2\n    e: 3\n  f: 4\ng:\n  c: 5\n");
}

}  // namespace exported_test
