// The scorecard as one page that needs nothing else: no script, no font, no network.
#pragma once

#include <string>
#include <vector>

#include "planner/accuracy/validation.hpp"

namespace planner {

// `notes` is Markdown of headings, lists and paragraphs, put at the end.
std::string scorecard_html(const std::vector<ValidationRow>& rows, bool every_row,
                           const std::string& notes);

}  // namespace planner
