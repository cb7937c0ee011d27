#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "planner/report_text.hpp"

namespace planner {

namespace {

std::vector<std::string> figure_cells(const std::string& source, const ErrorFigures& f) {
  if (f.rows == 0) return {source, "0", "", "", "", "", "", ""};
  const auto percent = [](double v) { return fmt::format("{:.1f}", v); };
  return {source,
          fmt::format("{}", f.rows),
          percent(f.mape),
          percent(f.median_ape),
          percent(f.p90_ape),
          percent(f.max_ape),
          fmt::format("{:+.1f}", f.bias),
          fmt::format("{:.0f}", f.coverage)};
}

Table figures_table() {
  Table t{{{"source", false}}, {}};
  for (const auto* title : {"runs", "MAPE %", "median %", "p90 %", "max %", "bias %", "inside %"})
    t.columns.push_back({title});
  return t;
}

Table timed_table(const ValidationSummary& s) {
  Table t = figures_table();
  for (const auto& [source, figures] : s.by_source) t.rows.push_back(figure_cells(source, figures));
  t.rows.push_back(figure_cells("all runs", s.all));
  return t;
}

Table memory_table(const ValidationSummary& s) {
  Table t = figures_table();
  for (const auto& [source, figures] : s.memory_by_source) {
    auto cells = figure_cells(source, figures);
    cells.back().clear();  // no interval is given for memory
    t.rows.push_back(cells);
  }
  return t;
}

Table worst_table(const std::vector<ValidationRow>& rows) {
  std::vector<const ValidationRow*> timed;
  for (const auto& row : rows) {
    if (row.quantity == "iteration_s" && row.error.empty()) timed.push_back(&row);
  }
  std::stable_sort(timed.begin(), timed.end(), [](const auto* a, const auto* b) {
    return std::abs(a->error_pct()) > std::abs(b->error_pct());
  });
  Table t{{{"run", false}, {"measured s"}, {"predicted s"}, {"error %"}}, {}};
  for (std::size_t i = 0; i < std::min<std::size_t>(10, timed.size()); ++i) {
    const auto& row = *timed[i];
    t.rows.push_back({row.id, fmt::format("{:.4g}", row.measured),
                      fmt::format("{:.4g}", row.predicted),
                      fmt::format("{:+.1f}", row.error_pct())});
  }
  return t;
}

// How often each reason stands in the way, the commonest first. The place in the file is left out.
Table error_table(const std::vector<ValidationRow>& rows) {
  std::map<std::string, int> counts;
  for (const auto& row : rows) {
    if (row.quantity != "fits" || row.error.empty()) continue;
    const auto place = row.error.find(": ");
    ++counts[place == std::string::npos ? row.error : row.error.substr(place + 2)];
  }
  std::vector<std::pair<int, std::string>> sorted;
  for (const auto& [why, count] : counts) sorted.emplace_back(-count, why);
  std::sort(sorted.begin(), sorted.end());
  Table t{{{"runs"}, {"why", false}}, {}};
  for (const auto& [count, why] : sorted) t.rows.push_back({fmt::format("{}", -count), why});
  return t;
}

}  // namespace

Table validation_rows(const std::vector<ValidationRow>& rows) {
  Table t{{{"id", false},
           {"source", false},
           {"quantity", false},
           {"measured"},
           {"predicted"},
           {"error_pct"},
           {"low"},
           {"high"},
           {"inside"},
           {"error", false}},
          {}};
  for (const auto& row : rows) {
    const bool told = row.error.empty();
    const bool interval = told && row.interval;
    const auto number = [](bool shown, double v) {
      return shown ? fmt::format("{:.6g}", v) : std::string();
    };
    t.rows.push_back(
        {row.id, row.source, row.quantity, number(true, row.measured), number(told, row.predicted),
         number(told && row.quantity != "fits", row.quantity != "fits" ? row.error_pct() : 0),
         number(interval, interval ? row.interval->low.value : 0),
         number(interval, interval ? row.interval->high.value : 0),
         interval ? (row.inside() ? "true" : "false") : "", row.error});
  }
  return t;
}

std::string validation_report(const std::vector<ValidationRow>& rows, const ReportStyle& style) {
  const ValidationSummary s = summary_of(rows);
  const bool markdown = style.markup == Markup::markdown;
  const auto section = [&](const std::string& title, const Table& t) {
    if (t.rows.empty()) return std::string();
    return (markdown ? "\n### " + title + "\n\n" : "\n" + style.style.bold(title) + "\n") +
           (markdown ? to_markdown(t) : to_text(t));
  };
  std::string text = markdown ? "## Predictions against published runs\n\n" : "";
  text += fmt::format(
      "Iteration time of {} measured runs: mean error over sources {:.1f} %, over runs {:.1f} %, "
      "bias {:+.1f} %; {:.0f} % lie inside the interval.\n",
      s.all.rows, s.macro_mape, s.all.mape, s.all.bias, s.all.coverage);
  text += fmt::format(
      "{} runs could not be predicted; {} that ran are called too large for memory, {} that ran "
      "out of it are called fitting.\n",
      s.unpredicted, s.fitted_called_too_large, s.too_large_called_fitting);
  text += section("Iteration time, by source", timed_table(s));
  text += section("Peak memory, by source", memory_table(s));
  text += section("The ten largest errors", worst_table(rows));
  text += section("Not predicted", error_table(rows));
  return text;
}

}  // namespace planner
