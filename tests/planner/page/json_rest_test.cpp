#include "planner/page/json_rest.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "planner/page/json_figure.hpp"
#include "planner/page/json_shown.hpp"

namespace json_rest_test {

using nlohmann::ordered_json;
using planner::rest_html;

namespace {

bool has(const std::string& html, const std::string& text) {
  return html.find(text) != std::string::npos;
}

}  // namespace

TEST_CASE("rows are a table with every key, objects a list, inner ones folded") {
  const std::string rows = rest_html({{{"tp", 1}, {"s", 0.1}}, {{"tp", 2}, {"why", "<b>"}}});
  CHECK(has(rows, "<th class=\"r\">tp</th><th class=\"r\">s</th><th>why</th>"));
  CHECK(has(rows, "<data value=\"0.1\">0.1</data>"));
  CHECK(has(rows, "<td>&lt;b&gt;</td>"));
  const std::string object =
      rest_html({{"a", "x"},
                 {"few", {{"b", 2}, {"on", true}}},
                 {"inner", {{"b", 2}, {"c", 3}, {"d", 4}, {"e", 5}, {"f_s", 6}, {"g", 7}}}});
  CHECK(has(object, "<dt>a</dt><dd>x</dd>"));
  CHECK(has(object, "<dt>few</dt><dd>b <data value=\"2\">2</data>, on yes</dd>"));
  CHECK(has(object, "<summary>inner</summary>"));
  CHECK(has(object, "<dt>f</dt><dd><data value=\"6\">6 s</data></dd>"));
  CHECK(has(rest_html({"one", "two"}), "<li>one</li>"));
  CHECK(rest_html(ordered_json::array()).empty());
}

TEST_CASE("long lists are cut and say so; deep ones end") {
  ordered_json rows = ordered_json::array();
  for (int i = 0; i < 501; ++i) rows.push_back({{"i", i}});
  const std::string cut = rest_html(rows);
  CHECK(has(cut, "The first 500 of 501"));
  CHECK_FALSE(has(cut, ">500</data>"));
  ordered_json deep = 1;
  for (int i = 0; i < 1000; ++i) deep = {{"k", deep}};
  CHECK(rest_html(deep).size() < 10'000);
}

TEST_CASE("the rest has what the page does not show; values have all") {
  const ordered_json report{
      {"shown_s", 1.5},
      {"new_usd", 25},
      {"rows",
       {{{"name", "first"}, {"time_s", 1}, {"bytes", 2}}, {{"name", "second"}, {"time_s", 3}}}}};
  const planner::ShownValues shown(report);
  CHECK(planner::seconds_figure(report["shown_s"]) ==
        "<data value=\"1.5\" data-pointer=\"/shown_s\">1.5 s</data>");
  for (const ordered_json& row : report["rows"]) planner::seconds_figure(row["time_s"]);
  planner::words(report["rows"][1]["name"]);
  const std::string rest = rest_html(report);
  CHECK_FALSE(has(rest, "/shown_s"));
  CHECK(has(rest, "<data value=\"25\" data-pointer=\"/new_usd\">$25</data>"));
  CHECK(has(rest,
            "<tr><td>first</td><td class=\"r\"><data value=\"2\" "
            "data-pointer=\"/rows/0/bytes\">2 B</data></td></tr>"));
  CHECK_FALSE(has(rest, "second"));
  CHECK(rest_html(report).empty());
  CHECK(has(planner::values_html(report), "/shown_s"));
}

}  // namespace json_rest_test
