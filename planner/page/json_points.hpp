// The sections of a sweep; "" for any other report.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace planner {

// "3.2 s an iteration at tp 8, micro_batch 1: the fastest that fits; 9 of 12 points fit."
std::string points_verdict(const nlohmann::ordered_json& report);

// Every point with its time as a bar.
std::string points_section(const nlohmann::ordered_json& report);

}  // namespace planner
