// JSON of `collective` reads back: the terms add up to the time.
#include "planner/report/json_report.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "costmodel/plan/mesh.hpp"
#include "tests/costmodel/support/fixtures.hpp"

namespace json_collective_test {

TEST_CASE("a price as JSON") {
  const costmodel::ClusterSpec cluster = fixtures::cluster(64);
  const planner::CollectiveGroup group{cluster, costmodel::layout_of(64, 1, cluster)};
  const auto price =
      planner::priced(costmodel::CollectiveKind::all_reduce, costmodel::Bytes(1e9), group);
  const auto json = nlohmann::json::parse(planner::collective_json({price}, group));
  CHECK(json["ranks"] == 64);
  CHECK(json["ways"].size() == 6);
  const auto& row = json["rows"][0];
  double latency = row["fixed_s"], transfer = 0;
  for (const auto& term : row["tiers"]) {
    latency += term["hops"].get<double>() * term["latency_s"].get<double>();
    transfer = std::max(
        transfer, term["carried_bytes"].get<double>() / term["rate_bytes_per_s"].get<double>());
  }
  CHECK(fixtures::relative_error(latency + transfer, row["time_s"]) <= 1e-12);
  const auto two = nlohmann::json::parse(planner::collective_json({price, price}, group));
  CHECK(two["rows"].size() == 2);
  CHECK_FALSE(two.contains("ways"));
}

}  // namespace json_collective_test
