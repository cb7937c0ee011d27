#include "planner/frameworks/json_engine_launch.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

using namespace planner;

TEST_CASE("Arguments without a value are true") {
  const auto parsed =
      nlohmann::json::parse(to_json({"", {{"tp-size", "2"}, {"enable-x", ""}}, {"note"}}));
  CHECK(parsed["arguments"]["tp-size"] == "2");
  CHECK(parsed["arguments"]["enable-x"] == true);
  CHECK(parsed["notes"][0] == "note");
}
