#include "planner/batch/json_index_page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "costmodel/base/escape.hpp"
#include "costmodel/base/json_text.hpp"
#include "planner/page/json_figure.hpp"
#include "planner/page/json_rest.hpp"
#include "planner/page/json_shown.hpp"
#include "planner/page/page_style.hpp"
#include "planner/report/html_table.hpp"

namespace planner {

namespace {

using namespace costmodel;

// A file's name as an address, whatever is in it.
std::string address(const std::string& name) {
  std::string text = "./";
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain =
        std::isalnum(byte) != 0 || std::string_view("-_.~").find(c) != std::string_view::npos;
    text += plain ? std::string(1, c) : fmt::format("%{:02X}", byte);
  }
  return text;
}

// The columns of a scenario with a report, by their key; the first leads to its page.
constexpr std::array columns{"name",    "command",      "status", "iteration_s", "low_s",
                             "high_s",  "tokens_per_s", "mfu",    "peak_bytes",  "capacity_bytes",
                             "devices", "plan",         "message"};

bool is_done(const Json& row) { return at(row, {"status"}) == Json("done"); }
bool has_report(const Json& row) { return is_done(row) || at(row, {"status"}) == Json("no plan"); }

std::string tiles(const Json& counts) {
  std::string html = "<div class=\"tiles\">\n";
  for (const auto& [status, count] : counts.items()) {
    const char* colour = status == "failed" && count != Json(0) ? " class=\"bad\"" : "";
    html += fmt::format("<div class=\"tile\"><b{}>{}</b><span>{}</span></div>\n", colour,
                        count_figure(count), html_text(status));
  }
  return html + "</div>\n";
}

std::string cell(const Json& row, const char* key) {
  const Json& value = at(row, {key});
  return value.is_null() ? "" : line_html(key, value);
}

// Those that are done, then those without a plan.
Table results_of(const Json& rows) {
  Table table;
  for (std::size_t i = 0; i < columns.size(); ++i)
    table.columns.push_back({title_of(columns[i]), i > 2 && i + 2 < columns.size()});
  std::vector<const Json*> shown;
  for (const Json& row : rows)
    if (has_report(row)) shown.push_back(&row);
  std::stable_partition(shown.begin(), shown.end(), [](const Json* row) { return is_done(*row); });
  for (const Json* row : shown) {
    auto& cells = table.rows.emplace_back();
    for (const char* key : columns) cells.push_back(cell(*row, key));
    cells[0] = fmt::format("<a href=\"{}\">{}</a>", address(words(at(*row, {"name"})) + ".html"),
                           cells[0]);
    if (!is_done(*row)) cells[2] = "<span class=\"bad\">" + cells[2] + "</span>";
  }
  return table;
}

std::string others_of(const Json& rows) {
  std::string html;
  for (const Json& row : rows) {
    if (has_report(row)) continue;
    const std::string message = cell(row, "message");
    html += fmt::format("<li><b>{}</b> ({}, {}){}</li>\n", cell(row, "name"), cell(row, "command"),
                        cell(row, "status"), message.empty() ? "" : ": " + message);
  }
  return html.empty() ? "" : "<ul>\n" + html + "</ul>\n";
}

// On a narrow screen each scenario is a block of lines, and each line begins with its column.
std::string style(const Table& table) {
  std::string css =
      "<style>main{max-width:1560px}.wide td:first-child,.wide td:nth-last-child(-n+2){"
      "overflow-wrap:anywhere;min-width:9em}td a{min-width:0}.wide "
      "td:nth-child(3){white-space:nowrap}\n"
      "@media(max-width:760px){.wide thead{display:none}.wide tr,.wide td{display:block}"
      ".wide td{border:0;padding:1px 8px;text-align:left!important;white-space:normal!important}"
      ".wide td:empty{display:none}.wide td:before{color:var(--dim)}.wide tr{padding:6px 0;"
      "border-bottom:1px solid var(--line)}.wide td:first-child{font-weight:650}\n";
  for (std::size_t i = 1; i < table.columns.size(); ++i) {
    css += fmt::format(".wide td:nth-child({}):before{{content:\"{}: \"}}", i + 1,
                       table.columns[i].title);
  }
  return css + "}</style>\n";
}

}  // namespace

std::string index_page(const std::string& index) {
  const Json report = own_json(index);
  const ShownValues shown(report);
  const Json& rows = at(report, {"scenarios"});
  const Table results = results_of(rows);
  std::string html = tiles(at(report, {"counts"}));
  if (!results.rows.empty()) html += section("Reports", table_of_html(results));
  html += section("Without a report", others_of(rows));
  return html_page(fmt::format("{} scenarios", rows.size()), html,
                   std::string(report_head()) + style(results));
}

}  // namespace planner
