#include "planner/report/serving_comparison.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "costmodel/config/yaml.hpp"
#include "tests/costmodel/serving/support/served.hpp"

namespace serving_comparison_test {

using namespace planner;

namespace {

ServedColumn column(const std::string& name, const std::string& plan, int devices = 8) {
  const auto s = served::scenario("input_tokens: 512, output_tokens: 128, concurrency: 32",
                                  "llama-2-70b", "dgx-h100", devices, plan);
  return {name, costmodel::parse_yaml("plan: " + plan + "\nmodel: llama-2-70b\n", name), s,
          planned_estimate(s)};
}

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::string cell(const Table& table, const std::string& row, std::size_t at) {
  for (const auto& cells : table.rows)
    if (cells.front() == row) return cells.at(at);
  return "no such row";
}

}  // namespace

TEST_CASE("two plans side by side: what differs, where the time goes, and why") {
  const std::vector<ServedColumn> columns{column("four", "{tp: 4, dp: 1}"),
                                          column("eight", "{tp: 8, dp: 1}")};
  const Table rows = serving_comparison_rows(columns);
  CHECK(cell(rows, "plan.tp", 1) == "4");
  CHECK(cell(rows, "plan.tp", 2) == "8");
  CHECK(cell(rows, "model", 1) == "no such row");  // the same
  CHECK(std::stod(cell(rows, "output_tokens_per_s", 2)) ==
        doctest::Approx(columns[1].estimate.output_per_s).epsilon(1e-5));
  CHECK(std::stod(cell(rows, "weights read (s)", 1)) ==
        doctest::Approx(columns[0].estimate.token.weights.value).epsilon(1e-5));
  const std::string text = serving_comparison(columns, {});
  CHECK(holds(text, "eight answers 1."));
  CHECK(holds(text, "times the tokens a second of four (0."));
  CHECK(holds(text, " weights read"));
  CHECK(holds(text, "What comes of it"));
}

TEST_CASE("a column that does not fit says what its weights take, and tells no rate") {
  const std::vector<ServedColumn> columns{column("one", "{tp: 1, dp: 1}"),
                                          column("four", "{tp: 4, dp: 1}")};
  REQUIRE_FALSE(columns[0].estimate.fits);
  const Table rows = serving_comparison_rows(columns);
  CHECK(cell(rows, "output_tokens_per_s", 1).empty());
  CHECK(cell(rows, "fits", 1) == "false");
  CHECK(cell(rows, "fits", 2) == "true");
  CHECK(holds(serving_comparison(columns, {}), "one does not fit: its weights take"));
  const auto cells = served_cells(columns[0].estimate);
  REQUIRE(cells.size() == served_titles().size());
  CHECK(cells.front().empty());
  CHECK(cells.back() == "false");
}

TEST_CASE("equal inputs differ in nothing") {
  const std::vector<ServedColumn> columns{column("a", "{tp: 4, dp: 1}"),
                                          column("b", "{tp: 4, dp: 1}")};
  const std::string text = serving_comparison(columns, {});
  CHECK(holds(text, "Nothing: the inputs are the same."));
  CHECK(holds(text, "b answers 1.00 times"));
  CHECK(holds(text, "its parts are the same"));
}

}  // namespace serving_comparison_test
