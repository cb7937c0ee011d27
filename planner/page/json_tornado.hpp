// What the answer hangs on, as a section of the page; "" for a report that does not tell it.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace planner {

// The inputs by their effect, each with what its uncertainty does to the iteration as a bar.
std::string sensitivity_section(const nlohmann::ordered_json& report);

}  // namespace planner
