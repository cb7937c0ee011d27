#include "planner/page/json_figure.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

namespace json_figure_test {

TEST_CASE("a figure keeps its number's own text beside the rounded one") {
  CHECK(planner::seconds_figure(17.140302606851797) ==
        "<data value=\"17.140302606851797\">17.14 s</data>");
  CHECK(planner::count_figure(1536) == "<data value=\"1536\">1,536</data>");
  CHECK(planner::share_figure(0.4122) == "<data value=\"0.4122\">41.2 %</data>");
  CHECK(planner::bytes_figure(planner::Json()) == "–");
  CHECK(planner::gib_figure("<x>") == "&lt;x&gt;");
}

TEST_CASE("what is missing is null; values are words") {
  const planner::Json json{{"a", {{"b", 2}}}};
  CHECK(planner::at(json, {"a", "b"}) == 2);
  CHECK(planner::at(json, {"a", "c", "d"}).is_null());
  CHECK(planner::number_at(json, {"b"}) == 0);
  CHECK(planner::words({{"granularity", "full"}, {"layers", 1}}) == "granularity full, layers 1");
  CHECK(planner::sentences({"<a>"}) == "<ul>\n<li>&lt;a&gt;</li>\n</ul>\n");
  CHECK(planner::section("t", "").empty());
}

}  // namespace json_figure_test
