// The text of a run of serving.
#include "runtime/run/serve_report.hpp"

#include <doctest/doctest.h>

#include <string>

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

}  // namespace

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
