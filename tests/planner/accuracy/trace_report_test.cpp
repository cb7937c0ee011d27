#include "planner/accuracy/trace_report.hpp"

#include <doctest/doctest.h>

#include "tests/costmodel/support/fixtures.hpp"

namespace trace_report_test {

using fixtures::contains;
using planner::FittedTrace;
using planner::TracedPart;

namespace {

FittedTrace trace() {
  FittedTrace of;
  of.read.file = "t.json";
  of.read.profiler = "torch.profiler";
  of.read.times.iterations = 2;
  of.read.times.kinds[0] = costmodel::Seconds(0.1);
  of.read.times.kernels = costmodel::Seconds(0.11);
  of.read.times.parts = {{TracedPart::mlp_products, false, costmodel::Seconds(0.1), 4},
                         {TracedPart::unknown, false, costmodel::Seconds(0.01), 1}};
  of.read.times.left_over = {{"stranger", "aten::odd", costmodel::Seconds(0.01)}};
  of.before.kinds[0] = 0.12;
  of.before.iteration = costmodel::Seconds(0.13);
  of.unprofiled = costmodel::Seconds(0.12);
  return of;
}

}  // namespace

TEST_CASE("measured and predicted stand in a row, and what is not attributed is named") {
  const std::string text = planner::trace_text(trace());
  CHECK(contains(text, "90.9 % of the kernels' time is attributed"));
  CHECK(contains(text, "aten::odd    stranger"));
  CHECK(contains(text, "no operator of the host is recorded"));
  const auto table = planner::kind_table(trace());
  CHECK(table.rows.front()[1] == "102.40");  // as in a training that goes on
  CHECK(table.rows.front()[2] == "120.00");
}

TEST_CASE("what a stack's description lacks is named with its seconds") {
  CHECK(contains(planner::trace_text(trace()), "not in the stack's description"));
  CHECK(contains(planner::trace_text(trace()), "products of the MLP"));
}

TEST_CASE("a launch is printed where it was fitted") {
  costmodel::OwnRuns own{1, "torchtitan"};
  CHECK(!contains(planner::trace_report({trace()}, own, costmodel::Seconds(4e-5)), "A launch"));
  own.kernel_launch = costmodel::Seconds(3e-5);
  CHECK(contains(planner::trace_report({trace()}, own, costmodel::Seconds(4e-5)),
                 "A launch takes the host 30 us"));
}

}  // namespace trace_report_test
