// A report of plan, evaluate, sweep or any other command as one self-contained page of HTML.
#pragma once

#include <string>
#include <vector>

#include "costmodel/estimate/memory_trace.hpp"
#include "costmodel/scenario/scenario.hpp"
#include "costmodel/schedule/timeline.hpp"

namespace planner {

// What a page draws of the best plan besides its figures; what is empty is left out.
struct Pictures {
  costmodel::Timeline timeline;
  costmodel::MemoryTrace memory;
};

// `json` is what the command prints with --format json, for that scenario. Throws InternalError
// when it is not JSON.
std::string page_html(const std::string& json, const costmodel::Scenario& scenario,
                      const Pictures& pictures = {});

// The same of a report of many scenarios: of sweep or compare.
std::string page_html(const std::string& json, const std::string& title,
                      const std::vector<std::string>& notes);

// A section with every figure of a report, for a page that is not made of its JSON. `without`: a
// key that is left out.
std::string figures_section(const std::string& json, const std::string& without = "");

}  // namespace planner
