#include "planner/traces/trace_file.hpp"

#include <doctest/doctest.h>

#include "tests/costmodel/support/fixtures.hpp"
#include "tests/planner/support/kineto.hpp"
#include "tests/run_program.hpp"

namespace trace_file_test {

using planner::is_trace_file;

TEST_CASE("a trace is distinguished from a log by its first bytes, whatever its name") {
  const program::Scratch scratch;
  const auto at = [&](const char* name) { return (scratch.path() / name).string(); };
  scratch.write("a.log", kineto::trace({{"aten::mm", "", "nvjet", 10}}));
  scratch.write("b.log", " iteration 1/ 5 | elapsed time per iteration (ms): 1.0 |\n");
  scratch.write("c.json", "{\"loss\": 1}\n");
  scratch.write("d.sqlite", std::string("SQLite format 3\0", 16));
  CHECK(is_trace_file(at("a.log")));
  CHECK(!is_trace_file(at("b.log")));
  CHECK(!is_trace_file(at("c.json")));
  CHECK(is_trace_file(at("d.sqlite")));
  CHECK(!is_trace_file(at("absent")));
  CHECK(!is_trace_file(scratch.path().string()));
}

TEST_CASE("a trace is read with its operators nested and its iterations found") {
  const program::Scratch scratch;
  scratch.write("t.json",
                kineto::trace({{"aten::mm", "[[8, 4]]", "nvjet", 10, "aten::linear"}}, 3));
  const auto trace = planner::read_trace((scratch.path() / "t.json").string());
  CHECK(trace.iterations.size() == 3);
  const auto& launcher = trace.operators[trace.kernels.front().launcher];
  REQUIRE(launcher.outer != planner::no_operator);
  CHECK(trace.text(trace.operators[launcher.outer].name) == "aten::linear");
}

TEST_CASE("an SQLite file that is no export is refused") {
  const program::Scratch scratch;
  scratch.write("d.sqlite", std::string("SQLite format 3\0", 16) + std::string(5000, 'x'));
  CHECK(fixtures::config_error([&] {
          planner::read_trace((scratch.path() / "d.sqlite").string());
        }).find(".sqlite") != std::string::npos);
}

}  // namespace trace_file_test
