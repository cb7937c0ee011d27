// Sections of other machines than the scenario's: what upgrades buy, fewer devices, the numbers of
// devices tried for a deadline or a budget; "" for a report that does not tell them.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace planner {

std::string upgrades_section(const nlohmann::ordered_json& report);

// The front over devices, cost and memory, with its points as a chart.
std::string device_front_section(const nlohmann::ordered_json& report);

// What --deadline and --budget tried.
std::string ladder_section(const nlohmann::ordered_json& report);

}  // namespace planner
