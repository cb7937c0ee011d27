#include "planner/page/svg_chart.hpp"

#include <doctest/doctest.h>

#include <fmt/format.h>

#include "tests/planner/support/pages.hpp"

namespace svg_chart_test {

using pages::has;
using planner::Chart;
using planner::HeatMap;

namespace {

Chart example() {
  Chart chart{.label = "time over devices",
              .x_title = "devices",
              .y_title = "time",
              .x_names = {"8", "16", "64"},
              .x_values = {8, 16, 64},
              .y_text = [](double y) { return fmt::format("{:g} s", y); },
              .lines = {}};
  chart.lines.push_back({.colour = "compute", .name = "a < b", .points = {}});
  chart.lines[0].points = {{8, 4.0, "first"}, {16, std::nullopt, ""}, {64, 1.0, "last", true}};
  return chart;
}

}  // namespace

TEST_CASE("a chart has its ticks, its points where they belong, and gaps") {
  const std::string html = chart_html(example());
  pages::check_balanced(html);
  CHECK(has(html, "<span style=\"bottom:0.0%\">0 s</span>"));
  CHECK(has(html, "<span style=\"bottom:100.0%\">4 s</span>"));
  // By the logarithm: 16 is a third of the way from 8 to 64.
  CHECK(has(html, "left:4.0%\">8</span>"));
  CHECK(has(html, "left:34.7%\">16</span>"));
  CHECK(has(html, "left:96.0%\">64</span>"));
  CHECK(has(html, "d=\"M40.0 0.0h0\"><title>first</title>"));
  CHECK(has(html, "class=\"dot marked compute\" d=\"M960.0 300.0h0\""));
  CHECK(has(html, "class=\"line compute\" d=\"M40.0 0.0M960.0 300.0\""));  // not across the gap
  CHECK_FALSE(has(html, "class=\"legend\""));                              // one line needs none
}

TEST_CASE("two lines have a legend; near values are linear; names are text") {
  Chart chart = example();
  chart.x_values = {8, 9, 10};
  chart.x_names = {"<8>", "9", "10"};
  chart.lines.push_back(chart.lines[0]);
  chart.lines[1].points = {{9, 2.0, "<b>"}, {8, 2.0, ""}, {10, 2.0, ""}};
  chart.lines[1].joined = false;
  chart.lines[0].points.clear();
  const std::string html = chart_html(chart);
  pages::check_balanced(html);
  CHECK(has(html, "left:50.0%\">9</span>"));
  CHECK(has(html, "&lt;8&gt;"));
  CHECK(has(html, "<title>&lt;b&gt;</title>"));
  CHECK(has(html, "a &lt; b</span>"));
  CHECK_FALSE(has(html, "class=\"line"));
}

TEST_CASE("without a point there is no chart") {
  Chart chart = example();
  chart.lines[0].points = {{8, std::nullopt, ""}};
  CHECK(chart_html(chart).empty());
  chart.lines.clear();
  CHECK(chart_html(chart).empty());
  chart = example();
  chart.lines[0].points = {{8, 0.0, ""}};
  CHECK(chart_html(chart).empty());
}

TEST_CASE("a heat map is darkest where least, grey where it does not count, empty without value") {
  HeatMap map{.label = "time",
              .row_title = "tp",
              .column_title = "b",
              .rows = {"1", "2"},
              .columns = {"x", "y"},
              .cells = {}};
  map.cells = {{{1.0, "1 s", "least"}, {3.0, "3 s", "most"}},
               {{std::nullopt, "–", ""}, {0.5, "0.5 s", "does not fit", true}}};
  const std::string html = heat_map_html(map);
  pages::check_balanced(html);
  CHECK(has(html, "fill-opacity=\"0.680\"><title>least</title>"));
  CHECK(has(html, "fill-opacity=\"0.080\"><title>most</title>"));
  CHECK(has(html, "class=\"bubble\" x=\"500.00\" y=\"200.00\""));
  CHECK(has(html, "<span>–</span>"));
  CHECK_FALSE(has(html, "x=\"0.00\" y=\"200.00\""));
  CHECK(has(html, "height:68px"));
}

TEST_CASE("as files of their own they hold their words, at the same places") {
  Chart chart = example();
  const std::string one = chart_svg(chart);
  pages::check_balanced(one);
  CHECK(one.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\""));
  CHECK(has(one, "class=\"dot marked compute\" d=\"M960.0 300.0h0\""));
  CHECK(has(one, "<text x=\"-10.0\" y=\"6.0\" text-anchor=\"end\">4 s</text>"));
  CHECK(has(one, "<text x=\"960.0\" y=\"426.0\" text-anchor=\"middle\">64</text>"));
  CHECK_FALSE(has(one, "a &lt; b"));
  chart.lines.push_back(chart.lines[0]);
  CHECK(has(chart_svg(chart), "class=\"of compute\">a &lt; b</text>"));
  chart.lines.clear();
  CHECK(chart_svg(chart).empty());
  const HeatMap map{.label = "time",
                    .row_title = "tp",
                    .column_title = "b",
                    .rows = {"1"},
                    .columns = {"x", "y"},
                    .cells = {{{1.0, "<1 s>", ""}, {std::nullopt, "–", ""}}}};
  const std::string two = heat_map_svg(map);
  pages::check_balanced(two);
  CHECK(has(two, "<text x=\"250.0\" y=\"206.0\" text-anchor=\"middle\" class=\"on\">&lt;1 s&gt;"));
  CHECK(has(two, "fill-opacity=\"0.680\""));
}

}  // namespace svg_chart_test
