#include "planner/report/html_table.hpp"

#include <doctest/doctest.h>

namespace html_table_test {

TEST_CASE("a page is whole, and what it holds cannot be markup") {
  const planner::Table table{{{"name", false}, {"s"}}, {{"<script>", "1"}, {"all runs", "2"}}};
  const std::string page = planner::html_page("a & b", planner::table_html(table));
  CHECK(page.starts_with("<!doctype html>"));
  CHECK(page.ends_with("</main></body></html>\n"));
  CHECK(page.find("<title>Shardplan: a &amp; b</title>") != std::string::npos);
  CHECK(page.find("<td>&lt;script&gt;</td><td class=\"r\">1</td>") != std::string::npos);
  CHECK(page.find("<tr class=\"sum\"><td>all runs") != std::string::npos);
  CHECK(page.find("<script") == std::string::npos);
}

}  // namespace html_table_test
