#include "planner/batch/index_page.hpp"

#include <doctest/doctest.h>

#include "tests/planner/support/pages.hpp"

namespace index_page_test {

TEST_CASE("a scenario with a page leads to it, whatever its name; one that failed does not") {
  const planner::Table index{{{"scenario", false}, {"command", false}, {"status", false}},
                             {{"a <b>\"#?%", "plan", "done"},
                              {"javascript:x", "plan", "no plan"},
                              {"wrong", "plan", "failed"}}};
  const std::string page = planner::index_page(index);
  pages::check_balanced(page);
  CHECK(pages::has(page, "<h1>3 scenarios</h1>"));
  CHECK(pages::has(page, "<a href=\"./a%20%3Cb%3E%22%23%3F%25.html\">a &lt;b&gt;"));
  CHECK(pages::has(page, "<a href=\"./javascript%3Ax.html\">"));
  CHECK(pages::has(page, "<td>wrong</td>"));
}

}  // namespace index_page_test
