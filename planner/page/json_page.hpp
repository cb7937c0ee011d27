// A report of plan, evaluate, sweep or any other command as one self-contained page of HTML.
#pragma once

#include <string>

#include "costmodel/scenario/scenario.hpp"

namespace planner {

// `json` is what the command prints with --format json, for that scenario. Throws InternalError
// when it is not JSON.
std::string page_html(const std::string& json, const costmodel::Scenario& scenario);

}  // namespace planner
