#include "planner/search/effort.hpp"

#include <doctest/doctest.h>

namespace effort_test {

using planner::any_effort;
using planner::Effort;

TEST_CASE("effort is over once more than allowed is spent, and stays so") {
  const std::function<bool()> never;
  Effort effort(10, never);
  CHECK_FALSE(effort.spend(10));
  CHECK_FALSE(effort.over());
  CHECK(effort.spend(1));
  CHECK(effort.spend(0));
  CHECK(effort.over());
  CHECK_FALSE(effort.stopped());
  CHECK(effort.spent() == 11);
}

TEST_CASE("time ends it whatever is spent, and is told apart from effort") {
  bool late = false;
  const std::function<bool()> expired = [&late] { return late; };
  Effort effort(any_effort, expired);
  CHECK_FALSE(effort.spend(1000));
  late = true;
  CHECK(effort.spend(0));
  CHECK(effort.stopped());
  late = false;
  CHECK(effort.spend(0));
}

TEST_CASE("what would be too much is given up before it is done") {
  const std::function<bool()> never;
  Effort effort(any_effort, never);
  effort.give_up();
  CHECK(effort.over());
  CHECK_FALSE(effort.stopped());
  CHECK(effort.spent() == 0);
}

}  // namespace effort_test
