// JSON that no section of a page knows, as lists and tables: what is new in a report is on its page
// without a line of code.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace planner {

// An object is a list of names and values, an array of objects a table, anything inside these is
// folded. Long arrays are cut, and say so.
std::string rest_html(const nlohmann::ordered_json& value);

}  // namespace planner
