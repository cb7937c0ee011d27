// The tables of `validate`, for text, Markdown and HTML.
#pragma once

#include <string>
#include <vector>

#include "planner/accuracy/scorecard.hpp"
#include "planner/report/plan_report.hpp"
#include "planner/report/table.hpp"

namespace planner {

struct Section {
  std::string title;
  Table table;  // a section without rows is not printed
};

// Level of detail. Default: brief, for a terminal. `full` adds each source's largest errors and
// each group of plans; `rows` adds every run.
struct Detail {
  bool full = false;
  bool rows = false;
};

// The main results in sentences of at most 100 characters.
std::vector<std::string> summary_lines(const Scorecard& card);

std::vector<Section> scorecard_sections(const std::vector<ValidationRow>& rows,
                                        const Scorecard& card, Detail detail);

// Errors by source, device, ..., memory, order of plans, the worst rows, what could not be
// predicted; every run if requested. `kept`: as for scorecard_of().
std::string validation_report(const std::vector<ValidationRow>& rows, bool every_row,
                              const ReportStyle& style,
                              const costmodel::ResidualTable* kept = nullptr);

// One row per run and quantity, for programs.
Table validation_rows(const std::vector<ValidationRow>& rows);

}  // namespace planner
