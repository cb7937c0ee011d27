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

TEST_CASE(
    "a kernel's operator is the one around the call that launched it, and rows have its type") {
  const auto row = [](const char* type) {
    planner::Trace trace;
    trace.file = "t.sqlite";
    for (const std::int64_t at : {0, 100}) {
      const auto outer = static_cast<std::uint32_t>(trace.operators.size());
      planner::TracedOperator product{trace.texts.of("aten::mm"),
                                      trace.texts.of("[[8,4],[4,2]]"),
                                      0,
                                      planner::no_operator,
                                      at,
                                      50};
      if (*type != 0) product.type = trace.texts.of(type);
      trace.operators.push_back(product);
      trace.operators.push_back(
          {trace.texts.of("cudaLaunchKernel"), trace.texts.of(""), 0, outer, at + 1, 5});
      trace.kernels.push_back({trace.texts.of("nvjet"), outer + 1, 0, at + 10, 20, at + 1, 0});
    }
    return nlohmann::json::parse(planner::trace_rows(trace, true))[0]["shape"];
  };
  CHECK(row("")["in_dtype"] == "bf16");
  CHECK(row("float")["in_dtype"] == "fp32");
  CHECK(row("c10::Half")["out_dtype"] == "fp16");
  CHECK(row("float")["m"] == 8);
}

TEST_CASE("YAML has a line a row, and a trace without sizes is refused") {
  CHECK(contains(rows({{"aten::mm", "[[8, 4], [4, 2]]", "nvjet", 10}}, false), "- {\"id\""));
  CHECK(contains(fixtures::config_error([] {
                   rows({{"aten::mm", "", "nvjet", 10}});
                 }),
                 "record_shapes=True"));
}

}  // namespace trace_rows_test
