#include "planner/report/machines_report.hpp"

#include <doctest/doctest.h>

#include "tests/planner/support/device_runs.hpp"

namespace device_front_report_test {

using fixtures::contains;
using planner::device_front_report;
using planner::DeviceFront;
using planner::FrontPoint;

namespace {

FrontPoint point(std::int64_t devices, double tokens_per_s, bool on_front) {
  FrontPoint made;
  made.devices = devices;
  made.plan.tokens_per_s = tokens_per_s;
  made.plan.iteration = costmodel::Seconds(1e6 / tokens_per_s);
  made.plan.peak = costmodel::Bytes(60.0 * (1 << 30));
  made.plan.capacity = costmodel::Bytes(79.0 * (1 << 30));
  made.on_front = on_front;
  return made;
}

}  // namespace

TEST_CASE("a billion tokens take devices over their rate") {
  CHECK(device_hours_per_billion_tokens(point(36, 1e5, true)) == doctest::Approx(100));
}

TEST_CASE("the front tells its points, how many it leaves out, and asks for the price") {
  DeviceFront front;
  front.points = {point(36, 1e5, true), point(72, 1e5, false), point(144, 4e5, true)};
  auto s = device_runs::priced();
  const std::string priced = device_front_report(front, s, {});
  for (const char* part : {"dollars", "10 s", "100,000", "100", "200", "60.0", "19.0", "2.5 s",
                           "1 of 3 that were tried are left out"}) {
    CAPTURE(part);
    CHECK(contains(priced, part));
  }
  CHECK(device_front_table(front, s).rows.size() == 2);
  s.cluster.operation.usd_per_device_hour = 0;
  CHECK(contains(device_front_report(front, s, {}), "cluster.price.usd_per_device_hour=2.50"));
  CHECK(device_front_report({}, s, {}).empty());
}

}  // namespace device_front_report_test
