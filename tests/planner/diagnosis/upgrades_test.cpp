#include "planner/diagnosis/upgrades.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "tests/planner/support/best_even.hpp"
#include "tests/planner/support/device_runs.hpp"

namespace upgrades_test {

using best_even::best_of;
using costmodel::DeviceSpec;
using costmodel::Estimate;
using costmodel::Scenario;
using planner::Reach;
using planner::Upgrade;
using planner::upgrade_gains;
using planner::UpgradeGain;
using planner::UpgradeKind;
using planner::upgrades_of;

namespace {

const Upgrade& named(const std::vector<Upgrade>& all, const std::string& name) {
  const auto at = std::ranges::find(all, name, &Upgrade::name);
  REQUIRE_MESSAGE(at != all.end(), name);
  return *at;
}

DeviceSpec other(const DeviceSpec& device, const std::string& name, double factor) {
  DeviceSpec changed = device;
  changed.name = name;
  for (auto& peak : changed.peak) peak *= factor;
  return changed;
}

}  // namespace

TEST_CASE("each upgrade changes what its name says, and nothing else") {
  const Scenario s = device_runs::priced();
  const auto all = upgrades_of(s, {});
  const auto& tiers = s.cluster.tiers;
  REQUIRE(tiers.size() == 2);
  const auto wide = named(all, "infiniband: 2 x the bandwidth").scenario.cluster.tiers;
  CHECK(wide[1].bandwidth == tiers[1].bandwidth * 2);
  CHECK(wide[0].bandwidth == tiers[0].bandwidth);
  const auto quick = named(all, "nvlink: half the latency").scenario.cluster.tiers;
  CHECK(quick[0].latency == tiers[0].latency * 0.5);
  CHECK(quick[0].fixed == tiers[0].fixed * 0.5);
  CHECK(quick[0].bandwidth == tiers[0].bandwidth);
  CHECK(named(all, "1.25 x the memory").scenario.cluster.device.memory ==
        s.cluster.device.memory * 1.25);
  const auto domain = named(all, "nvlink: 16 devices, not 8").scenario.cluster;
  CHECK(domain.tiers[0].devices == 16);
  CHECK(domain.devices_per_node == 16);
  CHECK(domain.devices == 64);
  const auto whole = named(all, "nvlink: 64 devices, not 8").scenario.cluster;
  CHECK(whole.tiers.size() == 1);
  CHECK(whole.tiers[0].name == "nvlink");
  CHECK(named(all, "72 devices: a node more").scenario.cluster.devices == 72);
  CHECK(named(all, "128 devices: 2 x as many").scenario.cluster.devices == 128);
}

TEST_CASE("other devices are offered where they are of the same maker and nowhere less") {
  const Scenario s = device_runs::priced();
  const DeviceSpec& now = s.cluster.device;
  DeviceSpec less_memory = other(now, "less", 2), foreign = other(now, "foreign", 2);
  less_memory.memory *= 0.5;
  foreign.title = "AMD " + foreign.title;
  const auto all =
      upgrades_of(s, {other(now, "same", 1), other(now, "faster", 2), less_memory, foreign});
  std::vector<std::string> devices;
  for (const Upgrade& upgrade : all)
    if (upgrade.kind == UpgradeKind::device) devices.push_back(upgrade.name);
  CHECK(devices == std::vector<std::string>{"faster devices, the network kept"});
}

TEST_CASE("gains are those of the best plan of each, the largest first") {
  const Scenario s = device_runs::priced();
  const Estimate without = best_of(s);
  const std::vector<DeviceSpec> known{other(s.cluster.device, "faster", 2)};
  const auto found = upgrade_gains(s, without, known, {.reach = Reach::even, .threads = 2});
  REQUIRE(found.gains.size() == upgrades_of(s, known).size());
  for (std::size_t i = 1; i < found.gains.size(); ++i)
    CHECK(found.gains[i - 1].speedup >= found.gains[i].speedup);
  for (const Upgrade& upgrade : upgrades_of(s, known)) {
    CAPTURE(upgrade.name);
    const auto gain = std::ranges::find(found.gains, upgrade.name, &UpgradeGain::name);
    REQUIRE(gain != found.gains.end());
    if (!gain->best) {  // 72 devices do not divide the batch
      CHECK(gain->devices == 72);
      CHECK(gain->speedup == 0);
      CHECK(gain->refused.find("global_batch") != std::string::npos);
      continue;
    }
    CHECK(gain->refused.empty());
    CHECK(gain->best->iteration == best_of(upgrade.scenario).iteration);
    CHECK(gain->speedup == without.iteration / gain->best->iteration);
    // More of anything but devices, whose number may not suit the batch, is no loss, unless a
    // simpler plan becomes quick enough.
    if (upgrade.kind != UpgradeKind::devices) CHECK(gain->speedup >= 1 / 1.01);
    CHECK(gain->speedup_per_cost.has_value() == (upgrade.kind == UpgradeKind::devices));
    if (gain->speedup_per_cost && gain->devices == 128)
      CHECK(*gain->speedup_per_cost == gain->speedup / 2);
    CHECK(gain->same_plan == (gain->best->plan == without.plan));
  }
}

TEST_CASE("gains are the same on several threads, and stop when they are told") {
  const Scenario s = device_runs::priced();
  const Estimate without = best_of(s);
  const auto one = upgrade_gains(s, without, {}, {.reach = Reach::even, .threads = 1}),
             many = upgrade_gains(s, without, {}, {.reach = Reach::even, .threads = 3});
  REQUIRE(one.gains.size() == many.gains.size());
  for (std::size_t i = 0; i < one.gains.size(); ++i) {
    CHECK(one.gains[i].name == many.gains[i].name);
    CHECK(one.gains[i].speedup == many.gains[i].speedup);
  }
  const auto none =
      upgrade_gains(s, without, {}, {.reach = Reach::even, .threads = 2}, [] { return true; });
  CHECK(none.interrupted);
  CHECK(none.gains.empty());
  // What a search that is cut off has not found is no answer.
  for (const int asked : {3, 30, 300, 3000}) {
    int left = asked;
    const auto some = upgrade_gains(s, without, {}, {.reach = Reach::even, .threads = 1},
                                    [&left] { return --left < 0; });
    for (const auto& gain : some.gains) {
      const auto of = [&](const auto& all) {
        return std::ranges::find(all, gain.name, &UpgradeGain::name);
      };
      REQUIRE(of(one.gains) != one.gains.end());
      CHECK(gain.speedup == of(one.gains)->speedup);
    }
  }
}

}  // namespace upgrades_test
