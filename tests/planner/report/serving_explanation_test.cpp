#include "planner/report/serving_explanation.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "costmodel/base/unit_text.hpp"
#include "tests/costmodel/serving/support/served.hpp"

using namespace planner;

TEST_CASE("The formulas' table has a row for each symbol") {
  const auto s = served::usual();
  const Table table = serving_explanation(s, planned_estimate(s));
  CHECK(table.rows.size() == 19);
  for (const auto& row : table.rows) CHECK(row.size() == 3);
}

TEST_CASE("A factor on the products of experts is said") {
  const auto s = served::scenario("input_tokens: 512, output_tokens: 128, concurrency: 8",
                                  "mixtral-8x7b", "dgx-h100", 8, "{tp: 8, dp: 1}");
  const Table table = serving_explanation(s, planned_estimate(s));
  const auto at = std::find_if(table.rows.begin(), table.rows.end(),
                               [](const auto& row) { return row[0] == "t_w"; });
  REQUIRE(at != table.rows.end());
  CHECK((*at)[2].find("expert_factor") != std::string::npos);
}

TEST_CASE("What comes of rounding is nothing") {
  auto e = planned_estimate(served::usual());
  e.token.host = costmodel::Seconds(1.73e-18);
  const Table table = serving_explanation(served::usual(), e);
  const auto at = std::find_if(table.rows.begin(), table.rows.end(),
                               [](const auto& row) { return row[0] == "t_h"; });
  REQUIRE(at != table.rows.end());
  CHECK((*at)[1] == costmodel::format_seconds(costmodel::Seconds(0)));
}
