#include "planner/report/json_serving.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "tests/costmodel/serving/support/served.hpp"

using namespace planner;
using nlohmann::json;

TEST_CASE("JSON has the estimate's figures") {
  const auto s = served::usual("{tp: 2, dp: 2}");
  const auto e = planned_estimate(s);
  const json told = json::parse(serving_json(s, e, {}));
  CHECK(told["workload"] == "inference");
  CHECK(told["plan"]["devices"] == 4);
  CHECK(told["output_tokens_per_s"] == e.output_per_s);
  CHECK(told["next_token"]["mean_s"] == e.tpot.mean);
  CHECK(told["memory"]["cache_tokens"] == e.memory.tokens);
  CHECK(told["usd_per_hour"].is_null());
  CHECK(told["load_curve"].size() > 3);
}

TEST_CASE("A search's JSON has plans, front and whether they are proved") {
  const auto s = served::scenario("input_tokens: 512, output_tokens: 128, concurrency: 64",
                                  "llama-2-7b", "dgx-h100", 2, "{}");
  const json told = json::parse(serving_search_json(s, search_serving(s, 2), {}));
  CHECK(told["plans"].size() == 2);
  CHECK(told["search"]["proved"] == true);
  CHECK(told["plans"][0].contains("max_num_seqs"));
}

TEST_CASE("An overloaded plan has no latencies, and its run of so many requests has") {
  auto s = served::scenario("input_tokens: 512, output_tokens: 128, arrival_rate: 1000",
                            "llama-2-7b", "dgx-h100", 1, "{tp: 1, dp: 1}");
  const json full = json::parse(serving_json(s, planned_estimate(s), {}));
  CHECK(full["saturated"] == true);
  CHECK(full["first_token"]["mean_s"].is_null());
  CHECK(full["answer"]["p95_s"].is_null());
  CHECK(full["next_token"]["mean_s"].is_number());
  CHECK(full["requests_per_s"] == full["capacity_requests_per_s"]);
  CHECK(full["run"].is_null());
  s.serving.requests = 500;
  CHECK(json::parse(serving_json(s, planned_estimate(s), {}))["run"]["first_token_s"].is_number());
}

TEST_CASE("Where nothing fits no bytes are left, and devices are of both pools") {
  auto s = served::usual("{tp: 1, dp: 1}");
  s.serving.limits.gpu_memory_utilization = 0.05;
  CHECK(json::parse(serving_json(s, planned_estimate(s), {}))["memory"]["cache_bytes"] == 0);
  const auto pools =
      served::usual("{disaggregation: {prefill: {tp: 2, dp: 2}, decode: {tp: 1, dp: 4}}}");
  const json both = json::parse(serving_json(pools, planned_estimate(pools), {}));
  CHECK(both["plan"]["devices"] == 8);
  CHECK(both["plan_text"].get<std::string>().find("prompts on tp 2") == 0);
}
