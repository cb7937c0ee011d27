#include "planner/batch/json_index_page.hpp"

#include <doctest/doctest.h>

#include "planner/batch/json_row.hpp"
#include "tests/planner/support/pages.hpp"

namespace json_index_page_test {

using pages::has;
using planner::index_row;
using planner::JobState;

namespace {

const std::string evaluated = R"({"plan": {"tp": 2, "pp": 1, "dp": 4, "micro_batch": 1,
  "devices": 8}, "time": {"iteration_s": 2.5, "interval_s": [2, 3]},
  "throughput": {"tokens_per_s": 100, "mfu": 0.4},
  "memory": {"peak_bytes": 1073741824, "capacity_bytes": 2147483648, "fits": true}})";

std::string page_of(const std::vector<std::string>& rows) {
  return planner::index_page(planner::index_json(rows));
}

}  // namespace

TEST_CASE("a scenario with a report leads to it, whatever its name; one that failed does not") {
  const std::string page =
      page_of({index_row("a <b>\"#?%", "plan", JobState::done, evaluated, ""),
               index_row("javascript:x", "plan", JobState::no_plan, "{}", ""),
               index_row("wrong", "plan", JobState::failed, "", "x.yaml:1:2: no <model>")});
  pages::check_page(page);
  CHECK(has(page, "<h1>3 scenarios</h1>"));
  CHECK(has(page, "<a href=\"./a%20%3Cb%3E%22%23%3F%25.html\">a &lt;b&gt;"));
  CHECK(has(page, "<a href=\"./javascript%3Ax.html\">"));
  CHECK(has(page, "<b>wrong</b> (plan, failed): x.yaml:1:2: no &lt;model&gt;</li>"));
}

TEST_CASE("the counts come first, then what is done, then what has no plan, then what failed") {
  const std::string page = page_of({index_row("one", "plan", JobState::failed, "", "wrong"),
                                    index_row("two", "plan", JobState::no_plan, "{}", "too large"),
                                    index_row("three", "plan", JobState::done, evaluated, "")});
  std::size_t from = 0;
  for (const char* text : {"data-pointer=\"/counts/done\">1<", "data-pointer=\"/counts/failed\">1<",
                           ">three</a>", ">two</a>", "<b>one</b>"}) {
    CAPTURE(text);
    const std::size_t found = page.find(text, from);
    REQUIRE(found != std::string::npos);
    from = found;
  }
}

}  // namespace json_index_page_test
