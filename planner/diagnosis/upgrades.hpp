// What another machine would buy: the cluster changed in one respect, and the plan searched again.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "costmodel/estimate/estimate.hpp"
#include "costmodel/scenario/scenario.hpp"
#include "planner/search/strategy.hpp"

namespace planner {

enum class UpgradeKind { link, memory, domain, devices, device };

struct Upgrade {
  std::string name;  // "infiniband: 2 x the bandwidth"
  UpgradeKind kind = UpgradeKind::link;
  costmodel::Scenario scenario;
};

// Each tier's bandwidth twice, and its latency and start-up time half as long; memory 1.25 and 2
// times; the inner network's domain 2 and 8 times as wide (where it is the node, nodes are larger,
// and fewer are waited for); a node more, and twice the devices; and in place of the device each of
// `offered` of the same maker (the first word of the title) that is nowhere less (peak in the
// training's precision, memory to a hundredth, its bandwidth) and somewhere more, on the same
// network. All else is kept, the batch too.
std::vector<Upgrade> upgrades_of(const costmodel::Scenario& scenario,
                                 const std::vector<costmodel::DeviceSpec>& offered);

struct UpgradeGain {
  std::string name;
  UpgradeKind kind = UpgradeKind::link;
  std::int64_t devices = 0;
  std::optional<costmodel::Estimate> best;  // nothing: none fits, or none is valid
  std::string refused = {};                 // why no plan is valid; empty: none fits
  double speedup = 0;                       // against the best plan without
  bool same_plan = false;                   // as without
  // Speed-up over what it costs more, where that is known: of devices of the same kind, whose
  // number it is. 1 or more: a token costs no more than without.
  std::optional<double> speedup_per_cost = {};
};

struct UpgradeGains {
  costmodel::Estimate without;     // the best plan of the scenario
  std::vector<UpgradeGain> gains;  // the largest speed-up first; those without a plan last
  bool interrupted = false;        // `stopped` said so; then not all are there
};

// For stages that are alike on devices of one kind. Polls `stopped`.
UpgradeGains upgrade_gains(const costmodel::Scenario& scenario, const costmodel::Estimate& without,
                           const std::vector<costmodel::DeviceSpec>& offered,
                           const SearchMethod& method = {},
                           const std::function<bool()>& stopped = {});

}  // namespace planner
