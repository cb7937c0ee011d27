#include "planner/page/json_rest.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

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
  const std::string object = rest_html({{"a", "x"}, {"inner", {{"b", 2}}}});
  CHECK(has(object, "<dt>a</dt><dd>x</dd>"));
  CHECK(has(object, "<summary>inner</summary>"));
  CHECK(has(object, "<dt>b</dt>"));
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

}  // namespace json_rest_test
