#include "planner/accuracy/scorecard_html.hpp"

#include <fmt/format.h>

#include <sstream>
#include <string_view>

#include "costmodel/base/escape.hpp"
#include "planner/accuracy/scorecard_svg.hpp"
#include "planner/accuracy/scorecard_tables.hpp"

namespace planner {

namespace {

constexpr std::size_t long_table = 32;  // longer ones are folded

constexpr std::string_view style = R"(<style>
:root{color-scheme:light dark;--ink:#1c2024;--dim:#60646c;--line:#e4e7eb;--paper:#fff;--back:#f4f5f7;
--stripe:#f8f9fa}
@media(prefers-color-scheme:dark){:root{--ink:#edeef0;--dim:#a0a6b0;--line:#2b3036;--paper:#16181c;
--back:#0d0e10;--stripe:#1b1e22}}
*{box-sizing:border-box}
body{margin:0;background:var(--back);color:var(--ink);
font:15px/1.5 system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif}
main{max-width:1104px;margin:0 auto;padding:28px 16px 64px}
h1{font-size:26px;margin:0 0 4px}h2{font-size:18px;margin:0 0 10px}
.lead{color:var(--dim);margin:0 0 20px}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(180px,1fr));gap:12px;margin:0 0 20px}
.tile,section{background:var(--paper);border:1px solid var(--line);border-radius:10px}
.tile{padding:14px 16px}.tile b{display:block;font-size:27px;line-height:1.2;font-weight:650}
.tile span{color:var(--dim);font-size:13px}
section{padding:18px 20px;margin:0 0 16px}
.figure{padding:6px;overflow-x:auto}.figure svg{display:block;width:100%;height:auto;min-width:720px}
.wide{overflow-x:auto}
table{border-collapse:collapse;width:100%;font-size:13.5px;font-variant-numeric:tabular-nums}
th{font-weight:600;color:var(--dim);text-align:left;white-space:nowrap;
border-bottom:1px solid var(--line)}
th,td{padding:5px 10px;vertical-align:top}td{border-bottom:1px solid var(--line)}
tbody tr:nth-child(even){background:var(--stripe)}tbody tr:last-child td{border-bottom:0}
tr.sum td{font-weight:650;border-top:2px solid var(--line)}
.r{text-align:right;white-space:nowrap}
summary{cursor:pointer;font-size:18px;font-weight:650}details[open] summary{margin-bottom:10px}
summary small{color:var(--dim);font-weight:400;font-size:13px}
</style>
)";

std::string row_html(const Table& table, const std::vector<std::string>& cells,
                     std::string_view tag) {
  std::string html;
  for (std::size_t c = 0; c < cells.size(); ++c) {
    html += fmt::format("<{0}{1}>{2}</{0}>", tag, table.columns[c].right ? " class=\"r\"" : "",
                        costmodel::html_text(cells[c]));
  }
  return html;
}

std::string table_html(const Table& table) {
  std::vector<std::string> titles;
  for (const Column& column : table.columns) titles.push_back(column.title);
  std::string html = "<div class=\"wide\"><table><thead><tr>" + row_html(table, titles, "th") +
                     "</tr></thead><tbody>\n";
  for (const auto& row : table.rows) {
    const bool sum =
        row.front() == "all runs" || row.front() == "all groups" || row.front() == "all workloads";
    html += (sum ? "<tr class=\"sum\">" : "<tr>") + row_html(table, row, "td") + "</tr>\n";
  }
  return html + "</tbody></table></div>\n";
}

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
  std::string html =
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
      "<title>Shardplan: predictions against published runs</title>\n";
  html += style;
  html += "</head><body><main>\n<h1>Predictions against published runs</h1>\n";
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
  if (!notes.empty()) html += "<section>\n" + notes_html(notes) + "</section>\n";
  return html + "</main></body></html>\n";
}

}  // namespace planner
