#include "planner/page/json_points.hpp"

#include <doctest/doctest.h>

#include "tests/planner/support/pages.hpp"

namespace json_points_test {

using pages::both;
using pages::Both;
using pages::has;
using program::Scratch;

TEST_CASE("a sweep's page has every point, and says which is the fastest that fits") {
  const Scratch scratch;
  const Both swept =
      both("sweep tiny-gpt-cpu --over micro_batch=1,2,3 --over recompute=none,full", scratch);
  std::size_t told = 0, wrong = 0;
  for (const auto& point : swept.json) {
    if (point["iteration_s"].is_null()) {
      ++wrong;
      continue;
    }
    ++told;
    for (const char* key : {"iteration_s", "tokens_per_s", "mfu", "peak_gib"})
      pages::check_figure(swept.page, point[key]);
  }
  CHECK(told == 4);
  CHECK(wrong == 2);
  CHECK(has(swept.page, "the fastest that fits; 4 of 6 points fit."));
  CHECK(has(swept.page, "micro_batch 3"));  // of the error
}

TEST_CASE("without a point that fits the page says so; other reports have no points") {
  using nlohmann::ordered_json;
  const auto none = ordered_json::parse(
      R"([{"tp": 1, "m": 2, "iteration_s": 3.5, "fits": false, "error": null}])");
  CHECK(has(planner::points_verdict(none), "No point fits."));
  CHECK(has(planner::points_section(none), "<data value=\"3.5\">"));
  for (const char* other : {"{}", "[]", "[1]", "null", R"([{"iteration_s": 1}])"}) {
    CHECK(planner::points_verdict(ordered_json::parse(other)).empty());
    CHECK(planner::points_section(ordered_json::parse(other)).empty());
  }
}

}  // namespace json_points_test
