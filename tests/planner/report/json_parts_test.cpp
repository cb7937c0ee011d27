#include "planner/report/json_parts.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "tests/planner/support/best_even.hpp"
#include "tests/planner/support/device_runs.hpp"

namespace json_parts_test {

using planner::device_front;
using planner::sensitivity;
using planner::upgrade_gains;
using Json = nlohmann::ordered_json;

TEST_CASE("each part is one more key, with the figures of its result") {
  auto s = device_runs::priced();
  const auto best = best_even::best_of(s);
  const auto found = sensitivity(s, best, {});
  const Json one = Json::parse(planner::with_sensitivity(R"({"plans": []})", found));
  CHECK(one["plans"].empty());
  const Json& part = one["sensitivity"];
  CHECK(part["iteration_s"] == best.iteration.value);
  CHECK(part["searched"] == false);
  REQUIRE(part["inputs"].size() == found.inputs.size());
  const Json& first = part["inputs"][0];
  CHECK(first["key"] == found.inputs[0].input.key);
  CHECK(first["iteration_low_s"] == found.inputs[0].at_low.value);
  CHECK(first["effect"] == found.inputs[0].effect);
  CHECK_FALSE(first.contains("below"));

  const auto gains = upgrade_gains(s, best, {}, {.reach = planner::Reach::even});
  const Json two = Json::parse(planner::with_upgrades(one.dump(), gains, s));
  CHECK(two.contains("sensitivity"));
  REQUIRE(two["upgrades"]["gains"].size() == gains.gains.size());
  for (std::size_t i = 0; i < gains.gains.size(); ++i) {
    const Json& row = two["upgrades"]["gains"][i];
    CHECK(row["iteration_s"].is_null() == !gains.gains[i].best.has_value());
    if (!gains.gains[i].best) continue;
    CHECK(row["speedup"] == gains.gains[i].speedup);
    CHECK(row["speedup_per_cost"].is_null() == (row["kind"] != "devices"));
    CHECK(row["pays_up_to"].is_null() == (row["kind"] == "devices"));
    if (!row["pays_up_to"].is_null())
      CHECK(row["pays_up_to_usd_per_device_hour"] == 2 * row["speedup"].get<double>());
  }

  const auto front = device_front(s, {best});
  const Json three = Json::parse(planner::with_device_front(two.dump(), front, s));
  REQUIRE(three["device_front"]["points"].size() == front.points.size());
  const Json& last = three["device_front"]["points"].back();
  CHECK(last["devices"] == 64);
  CHECK(last["usd_per_billion_tokens"] ==
        2 * last["device_hours_per_billion_tokens"].get<double>());
  s.cluster.operation.usd_per_device_hour = 0;
  const Json unpriced = Json::parse(planner::with_device_front("{}", front, s));
  CHECK(unpriced["device_front"]["usd_per_device_hour"].is_null());
  CHECK(unpriced["device_front"]["points"][0]["usd_per_billion_tokens"].is_null());
}

}  // namespace json_parts_test
