#include "planner/diagnosis/widened_search.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace costmodel;
using namespace planner;

namespace widened_search_test {

TEST_CASE("A search is widened by the limits that leave a plan out, and by no other") {
  ParallelPlan plan;
  plan.tp = 8;
  plan.pp = 4;
  plan.zero = 1;
  plan.schedule = ScheduleKind::one_f_one_b;
  SearchLimits limits;
  CHECK(widened_search(limits, plan).empty());
  limits.max_tp = 8;
  limits.max_pp = 2;
  limits.zero = {0, 2};
  limits.schedules = {ScheduleKind::gpipe};
  limits.memory_margin = 0.2;
  CHECK(widened_search(limits, plan) ==
        std::vector<std::string>{"search.max_pp=4", "search.zero=1", "search.schedules=1f1b"});
  plan.pp = 1;  // no schedule
  CHECK(widened_search(limits, plan) == std::vector<std::string>{"search.zero=1"});
  const SearchLimits none = without_limits(limits);
  CHECK(widened_search(none, plan).empty());
  CHECK(none.memory_margin == 0.2);
}

}  // namespace widened_search_test
