#include "planner/traces/trace_rows.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "planner/traces/trace_file.hpp"
#include "tests/costmodel/support/fixtures.hpp"
#include "tests/planner/support/kineto.hpp"
#include "tests/run_program.hpp"

namespace trace_rows_test {

using fixtures::contains;

namespace {

std::string rows(const std::vector<kineto::Launch>& launches, bool json = true) {
  const program::Scratch scratch;
  scratch.write("t.json", kineto::trace(launches));
  return planner::trace_rows(planner::read_trace((scratch.path() / "t.json").string()), json);
}

}  // namespace

TEST_CASE("products and attention are rows by shape, the kernels of a call together") {
  const auto json = nlohmann::json::parse(
      rows({{"aten::mm", "[[8, 4], [4, 2]]", "nvjet", 10},
            {"aten::_flash_attention_forward", "[[2, 64, 8, 32], [2, 64, 8, 32]]", "flash", 20},
            {"aten::mul", "[[8, 4]]", "elementwise", 5}}));
  REQUIRE(json.size() == 2);
  const auto& product = json[0]["kind"] == "gemm" ? json[0] : json[1];
  CHECK(product["shape"]["m"] == 8);
  CHECK(product["shape"]["n"] == 2);
  CHECK(product["shape"]["k"] == 4);
  CHECK(product["measured"]["time_us"] == 10);
  CHECK(product["device"] == "NVIDIA H100 80GB HBM3");
}

TEST_CASE("YAML has a line a row, and a trace without sizes is refused") {
  CHECK(contains(rows({{"aten::mm", "[[8, 4], [4, 2]]", "nvjet", 10}}, false), "- {\"id\""));
  CHECK(contains(fixtures::config_error([] {
                   rows({{"aten::mm", "", "nvjet", 10}});
                 }),
                 "record_shapes=True"));
}

}  // namespace trace_rows_test
