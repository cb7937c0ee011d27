#include <fmt/format.h>

#include "planner/report_text.hpp"
#include "planner/scorecard_tables.hpp"

namespace planner {

std::string validation_report(const std::vector<ValidationRow>& rows, bool every_row,
                              const ReportStyle& style) {
  const bool markdown = style.markup == Markup::markdown;
  const Scorecard card = scorecard_of(rows);
  std::string text = markdown ? "## Predictions against published runs\n\n" : "";
  for (const auto& line : summary_lines(card)) text += (markdown ? "- " : "") + line + "\n";
  for (const auto& section : scorecard_sections(rows, card, {markdown, every_row})) {
    if (section.table.rows.empty()) continue;
    text += markdown ? "\n### " + section.title + "\n\n" + to_markdown(section.table)
                     : "\n" + style.style.bold(section.title) + "\n" + to_text(section.table);
  }
  return text;
}

}  // namespace planner
