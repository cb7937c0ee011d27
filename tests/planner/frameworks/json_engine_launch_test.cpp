#include "planner/frameworks/json_engine_launch.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

using namespace planner;

TEST_CASE("Arguments without a value are true") {
  const auto parsed =
      nlohmann::json::parse(to_json({"", {{"tp-size", "2"}, {"enable-x", ""}}, {"note"}, {}}));
  CHECK(parsed["arguments"]["tp-size"] == "2");
  CHECK(parsed["arguments"]["enable-x"] == true);
  CHECK(parsed["notes"][0] == "note");
}

TEST_CASE("Pools are two launches under their names") {
  EngineLaunch pools;
  pools.notes = {"note"};
  pools.pools = {{"", {{"tp-size", "2"}}, {}, {}}, {"", {{"tp-size", "4"}}, {}, {}}};
  const auto parsed = nlohmann::json::parse(to_json(pools));
  CHECK(parsed["prefill"]["arguments"]["tp-size"] == "2");
  CHECK(parsed["decode"]["arguments"]["tp-size"] == "4");
  CHECK(parsed["notes"][0] == "note");
  CHECK_FALSE(parsed.contains("arguments"));
}
