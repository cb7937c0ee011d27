// A report of plan, evaluate, sweep or any other command as one self-contained page of HTML.
#pragma once

#include <string>
#include <vector>

#include "costmodel/scenario/scenario.hpp"
#include "costmodel/schedule/timeline.hpp"

namespace planner {

// `json` is what the command prints with --format json, for that scenario; `timeline` of its best
// plan, without events for none. Throws InternalError when it is not JSON.
std::string page_html(const std::string& json, const costmodel::Scenario& scenario,
                      const costmodel::Timeline& timeline = {});

// The same of a report of many scenarios: of sweep or compare.
std::string page_html(const std::string& json, const std::string& title,
                      const std::vector<std::string>& notes);

// A section with every figure of a report, for a page that is not made of its JSON. `without`: a
// key that is left out.
std::string figures_section(const std::string& json, const std::string& without = "");

}  // namespace planner
