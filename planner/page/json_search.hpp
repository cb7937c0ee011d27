// The sections of a search: what is proved, why this plan, its neighbours, the other plans, or what
// stands in the way of any; "" where the JSON lacks what a section shows.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace planner {

// The end of the verdict: what is proved; without a plan, that there is none.
std::string proof_html(const nlohmann::ordered_json& report);

// Without a plan: what stands in the way, and what would help.
std::string failure_sections(const nlohmann::ordered_json& report);

std::string reasons_section(const nlohmann::ordered_json& report);
std::string steps_section(const nlohmann::ordered_json& report);
std::string plans_section(const nlohmann::ordered_json& report);
std::string front_section(const nlohmann::ordered_json& report);
std::string search_section(const nlohmann::ordered_json& report);

}  // namespace planner
