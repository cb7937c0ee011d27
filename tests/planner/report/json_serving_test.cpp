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
