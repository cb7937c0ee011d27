#include "planner/page/json_machines.hpp"

#include <doctest/doctest.h>

#include "tests/planner/support/pages.hpp"

namespace json_machines_test {

using pages::both;
using pages::Both;
using pages::has;

namespace {

const std::string scenario =
    "model: llama-3-8b\ncluster: {base: dgx-h100, devices: 32}\n"
    "training: {global_batch: 64, sequence: 8192, stack: megatron-core-2025}\n";

}  // namespace

TEST_CASE("upgrades and the front over devices: every figure on the page, a chart of the front") {
  const program::Scratch scratch;
  scratch.write("s.yaml", scenario);
  const Both found = both("plan s.yaml --strategy grid --upgrades --front", scratch);
  const auto& gains = found.json["upgrades"]["gains"];
  REQUIRE(gains.size() > 8);
  bool other_device = false;
  for (const auto& gain : gains) {
    CAPTURE(gain.dump());
    CHECK(has(found.page, gain["upgrade"].get<std::string>()));
    other_device = other_device || gain["upgrade"] == "b200-sxm-180gb devices, the network kept";
    if (gain["iteration_s"].is_null()) continue;
    pages::check_figure(found.page, gain["iteration_s"]);
    pages::check_figure(found.page, gain["speedup"]);
    if (!gain["speedup_per_cost"].is_null())
      pages::check_figure(found.page, gain["speedup_per_cost"]);
  }
  CHECK(other_device);
  const auto& points = found.json["device_front"]["points"];
  REQUIRE(points.size() > 2);
  std::size_t on = 0;
  for (const auto& point : points) {
    if (point["on_front"] == false) continue;
    ++on;
    for (const char* key : {"devices", "iteration_s", "tokens_per_s", "peak_bytes",
                            "headroom_bytes", "device_hours_per_billion_tokens"})
      pages::check_figure(found.page, point[key]);
  }
  CHECK(on > 2);
  CHECK(has(found.page, "<figure class=\"chart\">"));
  CHECK(has(found.page, "on the front") == (on < points.size()));  // the legend
}

TEST_CASE("a page of --deadline has every number of devices tried, and which is chosen") {
  const program::Scratch scratch;
  scratch.write("s.yaml", scenario);
  const std::string command =
      "plan s.yaml --strategy grid --tokens 100B "
      "--set cluster.price.usd_per_device_hour=2 --deadline ";
  const Both found = both(command + "60d", scratch);
  const auto& devices = found.json["devices"];
  REQUIRE(!devices["tried"].empty());
  CHECK(has(found.page, "Numbers of devices tried"));
  CHECK(has(found.page, devices["verdict"].get<std::string>()));
  CHECK(has(found.page, "<b>chosen</b>"));
  for (const auto& rung : devices["tried"]) {
    pages::check_figure(found.page, rung["devices"]);
    if (rung["iteration_s"].is_null()) continue;
    pages::check_figure(found.page, rung["iteration_s"]);
    for (const char* key : {"days_with_failures", "device_hours", "usd"})
      pages::check_figure(found.page, rung["training_run"][key]);
  }
  const Both none = both(command + "1h", scratch, 3);
  CHECK(none.json["devices"]["chosen"].is_null());
  CHECK(has(none.page, none.json["devices"]["verdict"].get<std::string>()));
  CHECK_FALSE(has(none.page, "<b>chosen</b>"));
}

TEST_CASE("a report without them has no such sections") {
  const auto none = nlohmann::ordered_json::parse(R"({"plans": []})");
  CHECK(planner::upgrades_section(none).empty());
  CHECK(planner::device_front_section(none).empty());
  CHECK(planner::ladder_section(none).empty());
}

}  // namespace json_machines_test
