// The JSON of schedules side by side.
#include "planner/report/json_report.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

namespace json_schedules_test {

using namespace planner;

TEST_CASE("a schedule's figures, or why there are none") {
  ComparedSchedule drawn;
  drawn.name = "1f1b";
  drawn.estimate.bubble_fraction = 0.25;
  drawn.estimate.memory.resize(1);
  drawn.estimate.memory[0].in_flight_micro_batches = 4;
  ComparedSchedule refused;
  refused.name = "dualpipe";
  refused.refused = "too few";
  const auto json = nlohmann::json::parse(schedules_json({drawn, refused}));
  REQUIRE(json["schedules"].size() == 2);
  CHECK(json["schedules"][0]["bubble_fraction"] == 0.25);
  CHECK(json["schedules"][0]["in_flight_micro_batches"] == 4);
  CHECK(json["schedules"][0]["fits"] == true);
  CHECK(json["schedules"][1] == nlohmann::json{{"schedule", "dualpipe"}, {"refused", "too few"}});
}

}  // namespace json_schedules_test
