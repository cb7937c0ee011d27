// Parts of a report in JSON that are there where they are asked for: what the answer hangs on, what
// upgrades buy, the front over devices.
#pragma once

#include <string>
#include <vector>

#include "costmodel/scenario/scenario.hpp"
#include "planner/diagnosis/remedies.hpp"
#include "planner/diagnosis/sensitivity.hpp"
#include "planner/diagnosis/upgrades.hpp"
#include "planner/search/device_front.hpp"
#include "planner/search/strategy.hpp"

namespace planner {

// Each returns the JSON of a report with one more key at its end, or in each of its plans.

// In each of "plans" its family's other "members": "iteration_s", "interval_s", "peak_bytes",
// "plan".
std::string with_members(const std::string& report_json, const FamilyMembers& members);

// "sensitivity": {"iteration_s", "searched", "interrupted", "inputs": [...], "without_effect":
// [...], "sentences"}. Each input: "key", "name", "unit", "value", "low", "high", "spread", "from",
// "iteration_low_s", "iteration_high_s", "effect"; of a search also "below" and "above", null where
// the best plan stays: {"value", "inside", "fits", "loss", "plan" (null: none fits)}.
std::string with_sensitivity(const std::string& report_json, const Sensitivity& found);

// "upgrades": {"iteration_s" (without), "interrupted", "gains": [...], "sentences"}. Each gain:
// "upgrade", "kind" (link, memory, domain, devices, device), "devices", "iteration_s" (null: none
// fits), "speedup", "speedup_per_cost" (null where the cost is not known), "pays_up_to" (times the
// price without), "pays_up_to_usd_per_device_hour" (null without a price), "same_plan", "plan".
std::string with_upgrades(const std::string& report_json, const UpgradeGains& found,
                          const costmodel::Scenario& scenario);

// "device_front": {"usd_per_device_hour" (null: not said), "interrupted", "points": [...],
// "sentences"}. Each point: "devices", "iteration_s", "tokens_per_s",
// "device_hours_per_billion_tokens", "usd_per_billion_tokens" (null without a price), "peak_bytes",
// "headroom_bytes", "on_front", "plan".
std::string with_device_front(const std::string& report_json, const DeviceFront& front,
                              const costmodel::Scenario& scenario);

// "remedies": what would help, in sentences.
std::string with_remedies(const std::string& report_json, const std::vector<std::string>& remedies);
// The same, and "fitting_changes" (json_plan).
std::string with_fitting_changes(const std::string& report_json,
                                 const std::vector<Remedy>& remedies);

}  // namespace planner
