#include "planner/accuracy/json_own_runs.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

namespace json_own_runs_test {

using namespace planner;
using costmodel::Seconds;

TEST_CASE("what needs two runs is null for one") {
  const costmodel::SiteSpread published{30, 0.045, 0.07, 0.6, 0.8, 1.7};
  const OwnRun run{"a.log", 40, Seconds(1.1), Seconds(1), {}};
  const auto one = nlohmann::json::parse(own_runs_json(fit_own_runs({run}, "s", published), 30));
  CHECK(one["runs"][0]["by_others_s"].is_null());
  CHECK(one["error_pct"].is_null());
  CHECK(one["sources"] == 30);
  const OwnRunsFit own = fit_own_runs({run, run}, "s", published);
  const auto two = nlohmann::json::parse(own_runs_json(own, 30));
  CHECK(two["time_factor"] == own.measured.time_factor);
  CHECK(two["runs"][1]["by_others_s"] > 1);
  CHECK(two["error_pct"] == doctest::Approx(100 * 0.1 / 1.1));
  CHECK(two["by_others_error_pct"] < two["error_pct"]);
  CHECK(two["refused"] == false);
}

}  // namespace json_own_runs_test
