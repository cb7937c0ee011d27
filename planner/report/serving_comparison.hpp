// Predictions of serving side by side, and those of a sweep as rows.
#pragma once

#include <string>
#include <vector>

#include "costmodel/config/value.hpp"
#include "planner/report/plan_report.hpp"
#include "planner/report/table.hpp"
#include "planner/search/serving_search.hpp"

namespace planner {

struct ServedColumn {
  std::string name;        // distinct
  costmodel::Value input;  // the scenario as written, with its plan resolved
  costmodel::ServingScenario scenario;
  costmodel::ServingEstimate estimate;
};

// What a sweep tells of a point, in base units, and the cells of one. Where it does not fit, only
// its memory is known.
std::vector<std::string> served_titles();
std::vector<std::string> served_cells(const costmodel::ServingEstimate& estimate);

// What differs, the results and the parts of a token's time, for programs.
Table serving_comparison_rows(const std::vector<ServedColumn>& columns);
// The same for people, and why one answers faster than the first.
std::string serving_comparison(const std::vector<ServedColumn>& columns, const ReportStyle& style);

}  // namespace planner
