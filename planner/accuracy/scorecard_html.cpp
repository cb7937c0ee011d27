#include "planner/accuracy/scorecard_html.hpp"

#include <fmt/format.h>

#include <sstream>

#include "costmodel/base/escape.hpp"
#include "planner/accuracy/json_accuracy.hpp"
#include "planner/accuracy/scorecard_svg.hpp"
#include "planner/accuracy/scorecard_tables.hpp"
#include "planner/page/json_page.hpp"
#include "planner/page/page_style.hpp"
#include "planner/report/html_table.hpp"

namespace planner {

namespace {

constexpr std::size_t long_table = 32;  // longer ones are folded

std::string section_html(const Section& section) {
  const std::string title = costmodel::html_text(section.title);
  const std::string table = table_html(section.table);
  const std::size_t rows = section.table.rows.size();
  if (rows > long_table) {
    return fmt::format(
        "<section><details><summary>{} <small>{} rows</small></summary>\n{}</details></section>\n",
        title, rows, table);
  }
  return fmt::format("<section><h2>{}</h2>\n{}</section>\n", title, table);
}

std::string tile(const std::string& figure, const std::string& words) {
  return fmt::format("<div class=\"tile\"><b>{}</b><span>{}</span></div>\n", figure, words);
}

std::string tiles(const Scorecard& card) {
  const ValidationSummary& s = card.summary;
  std::string html = "<div class=\"tiles\">\n";
  if (card.unseen != nullptr) {
    html += tile(fmt::format("{:.1f} %", card.unseen->unseen.source.sources),
                 "mean error over sources, each left out of the fit");
  }
  html += tile(fmt::format("{:.1f} %", s.macro_mape), "mean error of iteration time, over sources");
  html += tile(fmt::format("{:+.1f} %", s.all.bias), "bias, over runs");
  html += tile(fmt::format("{:.1f} %", s.all.coverage), "of runs inside their 90 % interval");
  if (card.unseen != nullptr) {
    html += tile(fmt::format("{:.1f} %, {:.1f} %", card.unseen->of(false).covered,
                             card.unseen->of(true).covered),
                 "inside (dense models, experts), with the run's own source left out of the fit");
  }
  if (!card.rank.groups.empty()) {
    html += tile(fmt::format("{:.2f}", card.rank.mean_spearman),
                 "rank correlation of plans, predicted and measured");
  }
  if (const ChoiceFigures f = figures_of(card.rank.choices); f.workloads > 0) {
    html +=
        tile(fmt::format("{:.0f} %", f.right_pct),
             fmt::format("of workloads: the plan predicted fastest is within {:g} % of the fastest",
                         as_fast_pct));
  }
  return html + "</div>\n";
}

// Headings, lists and paragraphs of Markdown; anything else is a paragraph.
std::string notes_html(const std::string& notes) {
  std::istringstream in(notes);
  std::string html, paragraph, open;
  const auto close = [&] {
    if (!paragraph.empty())
      html += fmt::format("<{0}>{1}</{0}>\n", open, costmodel::html_text(paragraph));
    paragraph.clear();
  };
  bool listed = false;
  for (std::string line; std::getline(in, line);) {
    const bool heading = line.starts_with("#"), item = line.starts_with("- ");
    if (heading || item || line.empty()) close();
    if (listed && (heading || (!item && line.empty()))) {
      html += "</ul>\n";
      listed = false;
    }
    if (line.empty()) continue;
    if (heading) {
      html += "<h2>" + costmodel::html_text(line.substr(line.find_first_not_of("# "))) + "</h2>\n";
      continue;
    }
    if (item && !listed) {
      html += "<ul>\n";
      listed = true;
    }
    if (paragraph.empty()) open = item ? "li" : "p";
    paragraph += (paragraph.empty() ? "" : " ") + (item ? line.substr(2) : line);
  }
  close();
  return html + (listed ? "</ul>\n" : "");
}

}  // namespace

std::string scorecard_html(const std::vector<ValidationRow>& rows, bool every_row,
                           const std::string& notes, const costmodel::ResidualTable* kept) {
  const Scorecard card = scorecard_of(rows, kept);
  const ValidationSummary& s = card.summary;
  std::string html;
  html += fmt::format(
      "<p class=\"lead\">{} measured runs of {} sources, {} more could not be "
      "predicted.</p>\n",
      s.all.rows, s.by_source.size(), s.unpredicted);
  html += tiles(card);
  html += "<section class=\"figure\">\n" + scatter_svg(rows) + "</section>\n<section>\n";
  for (const auto& line : summary_lines(card))
    html += "<div>" + costmodel::html_text(line) + "</div>\n";
  html += "</section>\n";
  for (const auto& section : scorecard_sections(rows, card, {true, every_row})) {
    if (!section.table.rows.empty()) html += section_html(section);
  }
  html += figures_section(validation_json(rows, kept), every_row ? "" : "rows");
  if (!notes.empty()) html += "<section>\n" + notes_html(notes) + "</section>\n";
  return html_page("Predictions against published runs", html, std::string(report_head()));
}

}  // namespace planner
