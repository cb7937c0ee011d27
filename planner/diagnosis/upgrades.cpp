#include "planner/diagnosis/upgrades.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "costmodel/base/parallel_for.hpp"
#include "costmodel/base/unit_text.hpp"
#include "planner/search/grid_search.hpp"

namespace planner {

using namespace costmodel;

namespace {

void double_bandwidth(Tier& tier) {
  tier.bandwidth *= 2;
  tier.single *= 2;
  for (auto& group : tier.groups) group.bandwidth *= 2;
  for (auto& table : tier.measured)
    for (double& rate : table.curve.rates) rate *= 2;
}

// Measured collectives stay: their latency is not told apart from the rest.
void halve_latency(Tier& tier) {
  tier.latency *= 0.5;
  tier.fixed *= 0.5;
}

void add_links(const Scenario& s, std::vector<Upgrade>& all) {
  for (std::size_t i = 0; i < s.cluster.tiers.size(); ++i) {
    const Tier& tier = s.cluster.tiers[i];
    if (tier.devices < 2) continue;
    auto& wide = all.emplace_back(Upgrade{tier.name + ": 2 x the bandwidth", UpgradeKind::link, s});
    double_bandwidth(wide.scenario.cluster.tiers[i]);
    if (!(tier.latency.value + tier.fixed.value > 0) || !tier.measured.empty()) continue;
    auto& quick = all.emplace_back(Upgrade{tier.name + ": half the latency", UpgradeKind::link, s});
    halve_latency(quick.scenario.cluster.tiers[i]);
  }
}

void add_memory(const Scenario& s, std::vector<Upgrade>& all) {
  for (const double factor : {1.25, 2.0}) {
    auto& more =
        all.emplace_back(Upgrade{fmt::format("{:g} x the memory", factor), UpgradeKind::memory, s});
    more.scenario.cluster.device.memory *= factor;
  }
}

// The tier of that name holds more devices. Tiers that it then holds are gone; where it is the
// node, nodes are larger.
ClusterSpec widened(const ClusterSpec& cluster, const std::string& name, std::int64_t devices) {
  ClusterSpec wide = cluster;
  if (wide.known_tiers.empty()) wide.known_tiers = wide.tiers;
  auto& tiers = wide.known_tiers;
  const auto domain = std::ranges::find(tiers, name, &Tier::name);
  if (domain == tiers.begin()) wide.devices_per_node = devices;
  domain->devices = devices;
  const auto next = std::find_if(domain + 1, tiers.end() - 1,
                                 [&](const Tier& tier) { return tier.devices > devices; });
  tiers.erase(domain + 1, next);
  tiers.back().devices = std::max(tiers.back().devices, devices + 1);
  return resized(wide, cluster.devices);
}

void add_domains(const Scenario& s, std::vector<Upgrade>& all) {
  const auto& tiers = s.cluster.tiers;
  if (tiers.size() < 2) return;
  const Tier& domain = tiers[tiers.size() - 2];
  std::int64_t before = domain.devices;
  for (const std::int64_t factor : {2, 8}) {
    if (before >= s.cluster.devices) break;  // it holds all already
    before = domain.devices * factor;
    auto& wide = all.emplace_back(
        Upgrade{fmt::format("{}: {} devices, not {}", domain.name, before, domain.devices),
                UpgradeKind::domain, s});
    wide.scenario.cluster = widened(s.cluster, domain.name, before);
  }
}

void add_devices(const Scenario& s, std::vector<Upgrade>& all) {
  const std::int64_t now = s.cluster.devices, node = std::min(now, s.cluster.devices_per_node);
  const auto add = [&](const std::string& name, std::int64_t devices) {
    all.push_back({name, UpgradeKind::devices, s});
    all.back().scenario.cluster = resized(s.cluster, devices);
  };
  if (node < now)
    add(fmt::format("{} devices: a node more", format_integer(now + node)), now + node);
  add(fmt::format("{} devices: 2 x as many", format_integer(2 * now)), 2 * now);
}

std::string maker_of(const DeviceSpec& device) {
  return device.title.substr(0, device.title.find(' '));
}

bool is_better(const DeviceSpec& a, const DeviceSpec& than, Precision precision) {
  const auto peak = a.peak_of(precision), before = than.peak_of(precision);
  const bool nowhere_less =
      peak >= before && a.memory >= than.memory && a.memory_bandwidth >= than.memory_bandwidth;
  const bool more =
      peak > before || a.memory > than.memory || a.memory_bandwidth > than.memory_bandwidth;
  return nowhere_less && more;
}

void add_other_devices(const Scenario& s, const std::vector<DeviceSpec>& offered,
                       std::vector<Upgrade>& all) {
  for (const DeviceSpec& device : offered) {
    const bool same_maker = maker_of(device) == maker_of(s.cluster.device);
    if (!same_maker || !is_better(device, s.cluster.device, s.training.precision)) continue;
    all.push_back({device.name + " devices, the network kept", UpgradeKind::device, s});
    all.back().scenario.cluster.device = device;
    set_neighbours(all.back().scenario.cluster);
  }
}

// The first rule that the plan without breaks there, with the replicas that the scenario fixes or
// as many as there are devices for.
std::string refusal(const Scenario& s, ParallelPlan plan) {
  const std::int64_t each = std::int64_t{plan.tp} * plan.pp * plan.cp;
  plan.dp =
      s.plan.dp.value_or(static_cast<int>(std::max<std::int64_t>(1, s.cluster.devices / each)));
  const auto broken = violations(plan, s.model, s.cluster, s.training);
  return broken.empty() ? "no plan obeys the rules" : broken.front().reason;
}

UpgradeGain gain_of(const Upgrade& upgrade, const Scenario& before, const Estimate& without,
                    const SearchMethod& method, const std::function<bool()>& stopped) {
  const Scenario& s = upgrade.scenario;
  SearchResult found =
      run_strategies(s, method.reach.value_or(usual_reach(s)), 1, {}, stopped).found;
  if (stopped && stopped()) return {};  // a search that was cut off has no answer
  UpgradeGain gain{.name = upgrade.name,
                   .kind = upgrade.kind,
                   .devices = s.cluster.devices,
                   .best = std::nullopt};
  if (found.plans.empty()) {
    if (found.statistics.configurations == 0 && !found.expired)
      gain.refused = refusal(s, without.plan);
    return gain;
  }
  gain.best = std::move(found.plans.front());
  gain.speedup = without.iteration / gain.best->iteration;
  gain.same_plan = gain.best->plan == without.plan;
  if (upgrade.kind == UpgradeKind::devices) {
    const double devices =
        static_cast<double>(gain.devices) / static_cast<double>(before.cluster.devices);
    gain.speedup_per_cost = gain.speedup / devices;
  }
  return gain;
}

}  // namespace

std::vector<Upgrade> upgrades_of(const Scenario& s, const std::vector<DeviceSpec>& offered) {
  std::vector<Upgrade> all;
  add_links(s, all);
  add_memory(s, all);
  add_domains(s, all);
  add_devices(s, all);
  add_other_devices(s, offered, all);
  return all;
}

UpgradeGains upgrade_gains(const Scenario& s, const Estimate& without,
                           const std::vector<DeviceSpec>& offered, const SearchMethod& method,
                           const std::function<bool()>& stopped) {
  const std::vector<Upgrade> all = upgrades_of(s, offered);
  UpgradeGains result{.without = without, .gains = std::vector<UpgradeGain>(all.size())};
  std::atomic<bool> ended = false;
  share_out(all.size(), method.threads, [&](std::size_t i) {
    if (ended || (stopped && stopped())) {
      ended = true;
      return;
    }
    result.gains[i] = gain_of(all[i], s, without, method, stopped);
  });
  result.interrupted = ended || (stopped && stopped());
  std::erase_if(result.gains, [](const UpgradeGain& gain) { return gain.name.empty(); });
  std::ranges::stable_sort(result.gains, std::greater<>(), &UpgradeGain::speedup);
  return result;
}

}  // namespace planner
