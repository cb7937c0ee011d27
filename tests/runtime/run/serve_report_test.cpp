// The text of a run of serving.
#include "runtime/run/run_report.hpp"

#include <doctest/doctest.h>

#include <string>

#include "tests/golden.hpp"
#include "tests/runtime/support/served_runs.hpp"

namespace serve_report_test {

using fixtures::contains;

namespace {

int exact(const std::string& text) {
  int count = 0;
  for (std::size_t at = text.find("exact\n"); at != std::string::npos;
       at = text.find("exact\n", at + 1))
    ++count;
  return count;
}

// Times, tokens and what the machine is left out.
std::string without_machine(const std::string& text) {
  std::string masked;
  for (std::string line : golden::lines_of(text)) {
    if (contains(line, " cores: times are those of taking turns")) continue;
    if (line.starts_with("time a token") || line.starts_with("first token"))
      line = line.substr(0, line.find("  ")) + " #";
    if (line.starts_with("note: matrix products by ")) line = "note: matrix products by #";
    if (contains(line, " answers of ")) line = line.substr(0, line.find(" tokens,")) + " tokens, #";
    masked += line + "\n";
  }
  return masked;
}

}  // namespace

TEST_CASE("the report of the scenario that is shipped, with a smaller model, is frozen") {
  runtime::ServeRequest request;
  const std::string file = SHARDPLAN_SOURCE_DIR "/configs/scenarios/serve-small-llama-cpu.yaml";
  request.root = costmodel::scenario_tree(file, fixtures::configs(), {"model=llama-tiny"});
  request.scenario = read_serving(request.root, "serve-small-llama-cpu", fixtures::configs());
  request.iterations = 1;
  const std::string text = serve_report(serve_plan(request).value());
  CHECK(golden::compare("report_run_serving.txt", without_machine(text)) == "");
}

TEST_CASE("the report names batch, plan and ranks, and calls bytes exact that are") {
  runtime::ServeResult r = served_runs::served(served_runs::llama, "{tp: 2, pp: 2, dp: 1}");
  const std::string text = serve_report(r);
  CAPTURE(text);
  CHECK(contains(text, "on laptop-cpu, 5 requests of 21 + 14 tokens\n"));
  CHECK(contains(text, "t 2 · p 2 · d 1, keys and values in blocks of 16 tokens\n"));
  CHECK(contains(text, "backend threads: 4 ranks, 1 batch, a cold one\n"));
  CHECK(contains(text, "\nstage 1 keys and values "));
  CHECK(exact(text) == 9);
  CHECK_FALSE(contains(text, "at its pace"));
  CHECK(contains(text, "\n5 answers of 14 tokens, "));
  r.counted.front().cache += 1;
  CHECK(exact(serve_report(r)) + 1 == exact(text));
}

TEST_CASE("the checksum tells answers apart, and their order") {
  CHECK(runtime::checksum(std::vector<std::int64_t>{1, 2}) !=
        runtime::checksum(std::vector<std::int64_t>{2, 1}));
}

}  // namespace serve_report_test
