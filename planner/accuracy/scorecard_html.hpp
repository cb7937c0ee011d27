// The scorecard as one self-contained HTML page: no script, font or network access.
#pragma once

#include <string>
#include <vector>

#include "costmodel/scenario/residuals.hpp"
#include "planner/accuracy/validation.hpp"

namespace planner {

// `notes` is Markdown with headings, lists and paragraphs; it is appended.
std::string scorecard_html(const std::vector<ValidationRow>& rows, bool every_row,
                           const std::string& notes,
                           const costmodel::ResidualTable* kept = nullptr);

}  // namespace planner
