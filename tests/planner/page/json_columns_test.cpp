#include "planner/page/json_columns.hpp"

#include <doctest/doctest.h>

#include "tests/planner/support/pages.hpp"

namespace json_columns_test {

TEST_CASE("a comparison's page has what differs, why one is faster, and each one's figures") {
  const program::Scratch scratch;
  const pages::Both compared =
      pages::both("compare tiny-gpt-cpu --with plan.micro_batch=1 --with plan=auto", scratch);
  REQUIRE(compared.json["scenarios"].size() == 3);
  for (const auto& e : compared.json["scenarios"]) {
    pages::check_figure(compared.page, e["time"]["iteration_s"]);
    pages::check_numbers(compared.page, e["time"]["interval_s"]);
    pages::check_numbers(compared.page, e["time"]["breakdown"]);
    pages::check_figure(compared.page, e["memory"]["peak_bytes"]);
  }
  for (const auto& other : compared.json["against_first"]) {
    pages::check_figure(compared.page, other["speedup"]);
    CHECK(pages::has(compared.page, other["why"].get<std::string>()));
  }
  for (const auto& row : compared.json["differs"])
    CHECK(pages::has(compared.page, "<td>" + row["key"].get<std::string>() + "</td>"));
}

TEST_CASE("other reports are no comparison") {
  for (const char* other : {"{}", "[]", "null", R"({"scenarios": [], "against_first": []})"})
    CHECK(planner::comparison_sections(nlohmann::ordered_json::parse(other)).empty());
}

}  // namespace json_columns_test
