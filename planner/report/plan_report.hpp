// The reports of `plan` and `evaluate` for people: text for a terminal, or Markdown.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "costmodel/estimate/estimate.hpp"
#include "costmodel/scenario/scenario.hpp"
#include "planner/diagnosis/reason.hpp"
#include "planner/diagnosis/remedies.hpp"
#include "planner/report/style.hpp"
#include "planner/report/table.hpp"
#include "planner/search/grid_search.hpp"
#include "planner/search/strategy.hpp"

namespace planner {

enum class Markup { text, markdown };

struct ReportStyle {
  Markup markup = Markup::text;
  Style style;
};

// A line of a report that may hold names of the user's, escaped for the markup.
std::string escaped(const std::string& line, const ReportStyle& style);

// A sentence of a report on a line of its own, escaped but for `code`; "" for none.
std::string bullet(const std::string& sentence, const ReportStyle& style);
std::string bullets(const std::vector<std::string>& sentences, const ReportStyle& style);

// The heading of a part of a report, a table in it, and both.
std::string section_title(const std::string& text, const ReportStyle& style);
std::string section_table(const Table& table, const ReportStyle& style);
std::string table_section(const std::string& title, const Table& table, const ReportStyle& style);

// Two lines with the input: model, cluster, batch.
std::string heading(const costmodel::Scenario& scenario, const ReportStyle& style);

// The chance that the plan fits, by the errors of published peaks: "97 %", "over 99 %".
std::string fits_chance(const costmodel::Estimate& estimate, const costmodel::Scenario& scenario);

// What of its devices, host memory or drives a plan exceeds, the first of these; "" if it fits.
std::string overflow_text(const costmodel::Estimate& estimate);

// Time, throughput, memory, time breakdown, memory by stage, traffic, notes.
std::string plan_report(const costmodel::Estimate& estimate, const costmodel::Scenario& scenario,
                        const ReportStyle& style);

// The chosen plan's report, the reasons, the ranking, with the families' members if there are any,
// the memory front likewise, the plans one step away, what was searched.
std::string search_report(const Strategies& strategies, const std::vector<Step>& steps,
                          const costmodel::Scenario& scenario, std::optional<double> seconds,
                          const ReportStyle& style,
                          const std::vector<costmodel::Estimate>& front = {},
                          const FamilyMembers& members = {});

// The changes with which a plan that does not fit would; empty for none.
std::string fitting_report(const std::vector<Remedy>& remedies, const ReportStyle& style);
// The same as rows of `explain`: group, settings, time of an iteration, sentence.
std::vector<std::vector<std::string>> fitting_rows(const std::vector<Remedy>& remedies);

std::string failure_report(const SearchResult& result, const Diagnosis& diagnosis,
                           const costmodel::Scenario& scenario, const ReportStyle& style);

// For a search that was stopped before it had a plan.
std::string unfinished_report(const Strategies& strategies, const costmodel::Scenario& scenario,
                              const ReportStyle& style);

}  // namespace planner
