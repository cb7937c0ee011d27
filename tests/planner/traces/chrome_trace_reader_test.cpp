#include "planner/traces/chrome_trace_reader.hpp"

#include <doctest/doctest.h>

#include <string>

#include "costmodel/schedule/chrome_trace.hpp"
#include "tests/costmodel/support/fixtures.hpp"
#include "tests/planner/support/kineto.hpp"

namespace chrome_trace_reader_test {

using fixtures::contains;
using planner::Trace;

namespace {

Trace read(std::string text) {
  bool given = false;
  return planner::read_chrome_trace(
      [&]() -> std::string_view {
        if (given) return {};
        given = true;
        return text;
      },
      "t.json");
}

std::string refused(const std::string& text) {
  return fixtures::config_error([&] { read(text); });
}

}  // namespace

TEST_CASE("kernels are joined with the operators that launched them") {
  const Trace trace = read(kineto::trace({{"aten::mm", "[[8, 4], [4, 2]]", "gemm", 10}}, 1));
  CHECK(trace.profiler == "torch.profiler");
  CHECK(trace.device == "NVIDIA H100 80GB HBM3");
  CHECK(trace.rank == 3);
  CHECK(trace.ranks == 8);
  REQUIRE(trace.kernels.size() == 1);
  const auto& kernel = trace.kernels.front();
  CHECK(kernel.length == 10'000);
  REQUIRE(kernel.launcher != planner::no_operator);
  const auto& launcher = trace.operators[kernel.launcher];
  CHECK(trace.text(launcher.name) == "aten::mm");
  CHECK(trace.text(launcher.sizes) == "[[8,4][4,2]]");
  CHECK(kernel.launched > 0);
}

TEST_CASE("a list of events alone is a trace too") {
  const Trace trace = read(
      R"([{"ph": "X", "cat": "kernel", "name": "k", "ts": 1, "dur": 2, "args": {"stream": 7}}])");
  CHECK(trace.kernels.size() == 1);
}

TEST_CASE("the trace of a pipeline is its actions") {
  costmodel::Timeline timeline;
  timeline.ranks = 1;
  timeline.events.push_back(
      {0, costmodel::Stream::compute, "F0", costmodel::Seconds(0), costmodel::Seconds(1e-3)});
  const Trace trace = read(costmodel::to_chrome_trace(timeline, {costmodel::Seconds(2e-3), 0}));
  CHECK(trace.kernels.empty());
  REQUIRE(trace.actions.size() == 1);
  CHECK(trace.actions.front().length == 1'000'000);
  CHECK(trace.iteration.value == doctest::Approx(2e-3));
}

TEST_CASE("what is no trace, or holds nothing of a device, is refused with what to do") {
  CHECK(contains(refused("{}"), "no traceEvents"));
  CHECK(contains(refused("[1, 2]"), "no kernel of a device"));
  CHECK(contains(refused(R"({"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "a"}]})"),
                 "ProfilerActivity.CUDA"));
  const std::string all = kineto::trace({{"aten::mm", "", "gemm", 10}});
  CHECK(contains(refused(all.substr(0, all.size() / 2)), "cut short"));
  CHECK(contains(refused("iteration 1: 2 s"), "is not JSON"));
}

TEST_CASE("fields of other kinds than a profiler writes are nothing") {
  const Trace trace = read(
      R"({"traceEvents": [{"ph": "X", "cat": "kernel", "name": 5, "ts": "x", "dur": 2,
          "args": {"External id": "y", "correlation": [1, {"a": 2}]}}, 7, "z", [],
          {"ph": "X", "cat": "kernel", "name": "k", "ts": 1e300, "dur": 1e300, "args": 3}]})");
  CHECK(trace.kernels.size() == 2);
}

}  // namespace chrome_trace_reader_test
