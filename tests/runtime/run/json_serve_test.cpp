// The JSON of a run of serving.
#include "runtime/run/json_run.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/runtime/support/served_runs.hpp"

namespace json_serve_test {

TEST_CASE("prediction and measurement have one shape, and their bytes one value") {
  const runtime::ServeResult r = served_runs::served(served_runs::llama, "{tp: 2, pp: 2, dp: 1}");
  const auto json = nlohmann::json::parse(serve_json(r));
  CHECK(json["plan"] == nlohmann::json{{"tp", 2}, {"pp", 2}, {"dp", 1}});
  CHECK(json["measured"]["communication"] == json["predicted"]["communication"]);
  for (const std::size_t p : {0, 1}) {
    auto seen = json["measured"]["memory"]["stages"][p];
    CHECK(seen["activations_bytes"].get<double>() > 0);
    seen.erase("activations_bytes");
    CHECK(seen == json["predicted"]["memory"]["stages"][p]);
    // 5 requests of 34 cached tokens take 3 blocks of 16 each; 2 layers, 2 heads of 4, K and V.
    CHECK(seen["kv_cache_bytes"].get<double>() == 5 * 3 * 16 * 2 * 2 * (2 * 4 * 4));
  }
  CHECK(json["answers"].size() == 5);
  CHECK(json["answers"][4].size() == 14);
  CHECK(json["error_pct"]["stages.0.weights_bytes"] == 0);
  CHECK(json["measured"]["time"]["token_s"].get<double>() > 0);
  CHECK_FALSE(json.contains("at_pace"));
}

}  // namespace json_serve_test
