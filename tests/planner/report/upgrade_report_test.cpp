#include "planner/report/machines_report.hpp"

#include <doctest/doctest.h>

#include "tests/planner/support/device_runs.hpp"

namespace upgrade_report_test {

using costmodel::Seconds;
using fixtures::contains;
using planner::UpgradeGain;
using planner::UpgradeGains;
using planner::UpgradeKind;

namespace {

UpgradeGain gain(const std::string& name, UpgradeKind kind, double speedup) {
  UpgradeGain made;
  made.name = name;
  made.kind = kind;
  made.devices = 128;
  made.speedup = speedup;
  made.best = costmodel::Estimate{};
  made.best->iteration = Seconds(10 / speedup);
  made.best->plan.tp = 4;
  return made;
}

UpgradeGains example() {
  UpgradeGains found;
  found.without.iteration = Seconds(10);
  found.gains = {gain("128 devices", UpgradeKind::devices, 1.8),
                 gain("wide links", UpgradeKind::link, 1.25)};
  found.gains[0].speedup_per_cost = 0.9;
  found.gains[1].same_plan = true;
  UpgradeGain none;
  none.name = "too many devices";
  found.gains.push_back(none);
  none.name = "a node more";
  none.refused = "the batch does not divide";
  found.gains.push_back(none);
  return found;
}

}  // namespace

TEST_CASE("what an upgrade may cost is told in dollars where the price is known, else in times") {
  auto s = device_runs::priced();
  const std::string priced = upgrade_report(example(), s, {});
  for (const char* part : {"128 devices", "5.556 s", "1.800", "0.900", "t 4", "wide links", "1.250",
                           "2.50 dollars an hour", "the same", "none fits",
                           "none: the batch does not divide", "Against 10 s of the best plan"}) {
    CAPTURE(part);
    CHECK(contains(priced, part));
  }
  CHECK_FALSE(contains(priced, "What a device costs is not known"));
  s.cluster.operation.usd_per_device_hour = 0;
  const std::string unpriced = upgrade_report(example(), s, {});
  CHECK(contains(unpriced, "1.250 x the price"));
  CHECK(contains(unpriced, "--set cluster.price.usd_per_device_hour=2.50"));
}

}  // namespace upgrade_report_test
