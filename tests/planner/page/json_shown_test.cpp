#include "planner/page/json_shown.hpp"

#include <doctest/doctest.h>

namespace json_shown_test {

using nlohmann::ordered_json;
using planner::is_shown;
using planner::note_shown;
using planner::pointer_of;

TEST_CASE("values have their JSON pointers while a page of them is made") {
  const ordered_json report{{"plans", {{{"a/b", 1}, {"c~d", {2, 3}}}}}, {"none", nullptr}};
  const ordered_json& plan = report["plans"][0];
  CHECK(pointer_of(plan["a/b"]).empty());
  {
    const planner::ShownValues page(report);
    CHECK(pointer_of(plan["a/b"]) == "/plans/0/a~1b");
    CHECK(pointer_of(plan["c~d"][1]) == "/plans/0/c~0d/1");
    const ordered_json copy = plan["a/b"];
    CHECK(pointer_of(copy).empty());
  }
  CHECK(pointer_of(plan["a/b"]).empty());
}

TEST_CASE("a value is shown when all in it is; a null and what is empty always") {
  const ordered_json report{{"a", {1, 2}}, {"b", 1}, {"none", nullptr}, {"empty", {{"of", ""}}}};
  CHECK_FALSE(is_shown(report["a"]));
  const planner::ShownValues page(report);
  CHECK(is_shown(report["none"]));
  CHECK(is_shown(report["empty"]));
  note_shown(report["a"][0]);
  CHECK_FALSE(is_shown(report["a"]));
  note_shown(report["a"]);
  CHECK(is_shown(report["a"]));
  CHECK_FALSE(is_shown(report["b"]));  // an equal number elsewhere
  CHECK_FALSE(is_shown(report));
  const ordered_json other{{"x", 1}};
  CHECK_THROWS(planner::ShownValues(other));  // one page at a time
  CHECK(is_shown(report["a"]));
}

}  // namespace json_shown_test
