// The sections of a comparison of scenarios; "" for any other report.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace planner {

// What differs, why one is faster, and the figures side by side.
std::string comparison_sections(const nlohmann::ordered_json& report);

}  // namespace planner
