#include "planner/report/html_table.hpp"

#include <fmt/format.h>

#include <string_view>
#include <vector>

#include "costmodel/base/escape.hpp"

namespace planner {

namespace {

constexpr std::string_view page_style = R"(<style>
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
td a{display:inline-block;min-width:14em;overflow-wrap:anywhere}
tr.sum td{font-weight:650;border-top:2px solid var(--line)}
.r{text-align:right;white-space:nowrap}
summary{cursor:pointer;font-size:18px;font-weight:650}details[open] summary{margin-bottom:10px}
summary small{color:var(--dim);font-weight:400;font-size:13px}
</style>
)";

// `cells` are HTML.
std::string row_html(const Table& table, const std::vector<std::string>& cells,
                     std::string_view tag) {
  std::string html;
  for (std::size_t c = 0; c < cells.size(); ++c) {
    html += fmt::format("<{0}{1}>{2}</{0}>", tag, table.columns[c].right ? " class=\"r\"" : "",
                        cells[c]);
  }
  return html;
}

}  // namespace

std::string table_html(const Table& table) {
  Table safe = table;
  for (auto& row : safe.rows)
    for (auto& cell : row) cell = costmodel::html_text(cell);
  return table_of_html(safe);
}

std::string table_of_html(const Table& table) {
  std::vector<std::string> titles;
  for (const Column& column : table.columns) titles.push_back(costmodel::html_text(column.title));
  std::string html = "<div class=\"wide\"><table><thead><tr>" + row_html(table, titles, "th") +
                     "</tr></thead><tbody>\n";
  for (const auto& row : table.rows) {
    const bool sum =
        row.front() == "all runs" || row.front() == "all groups" || row.front() == "all workloads";
    html += (sum ? "<tr class=\"sum\">" : "<tr>") + row_html(table, row, "td") + "</tr>\n";
  }
  return html + "</tbody></table></div>\n";
}

std::string html_page(const std::string& title, const std::string& body, const std::string& head) {
  const std::string safe = costmodel::html_text(title);
  std::string html =
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
      "<meta name=\"generator\" content=\"shardplan " SHARDPLAN_VERSION "\">\n";
  html += fmt::format("<title>Shardplan: {}</title>\n", safe);
  html += page_style;
  html += head;
  html += fmt::format("</head><body><main>\n<h1>{}</h1>\n", safe);
  return html + body + "</main></body></html>\n";
}

}  // namespace planner
