#include "planner/page/svg_bar.hpp"

#include <doctest/doctest.h>

namespace svg_bar_test {

namespace {

bool has(const std::string& svg, const std::string& text) {
  return svg.find(text) != std::string::npos;
}

}  // namespace

TEST_CASE("parts lie side by side, to scale, none of size 0") {
  const std::string svg =
      planner::bar_svg({{"tp", 1, "a < b"}, {"pp", 0, "absent"}, {"dp", 3, "c"}}, 8, 6, "parts");
  CHECK(has(svg, "class=\"tp\" x=\"0.00\" width=\"125.00\""));
  CHECK(has(svg, "class=\"dp\" x=\"125.00\" width=\"375.00\""));
  CHECK(has(svg, "<title>a &lt; b</title>"));
  CHECK_FALSE(has(svg, "absent"));
  CHECK(has(svg, "<path class=\"limit\" d=\"M750.00 0V10\"/>"));
}

TEST_CASE("a hatched part is a dashed line of its size") {
  const std::string svg = planner::bar_svg({{"tp", 1, "a"}, {"dp", 1, "b", true}}, 4, 0, "parts");
  CHECK(has(svg, "<path class=\"dp hatched\" d=\"M250.00 5H500.00\"><title>b</title></path>"));
  CHECK(has(svg, "<rect class=\"tp\""));
}

TEST_CASE("what is beyond the axis, or not a number, stays inside the picture") {
  const std::string svg = planner::bar_svg({{"tp", 1e300, ""}}, 1, 0, "");
  CHECK(has(svg, "width=\"1000.00\""));
  CHECK_FALSE(has(planner::range_svg({1, 2, 3}, 0, ""), "nan"));
  CHECK(has(planner::range_svg({1, 2, 3}, 4, ""), "class=\"span\" x=\"250.00\" width=\"500.00\""));
}

}  // namespace svg_bar_test
