// JSON of `groups` reads back.
#include "planner/report/json_report.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

namespace json_groups_test {

TEST_CASE("groups as JSON: vLLM's of tensor 4 and pipeline 2") {
  costmodel::ParallelPlan plan;
  plan.tp = plan.etp = 4;
  plan.pp = 2;
  const auto json =
      nlohmann::json::parse(planner::groups_json({plan, costmodel::RankLayout::vllm}));
  CHECK(json["layout"] == "vllm");
  CHECK(json["ranks"] == 8);
  CHECK(json["groups"][0]["kind"] == "tensor");
  CHECK(json["groups"][0]["ranks"] == nlohmann::json({{0, 1, 2, 3}, {4, 5, 6, 7}}));
  CHECK(json["groups"][0]["network"].is_null());
}

}  // namespace json_groups_test
