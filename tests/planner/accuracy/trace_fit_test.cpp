#include "planner/accuracy/trace_fit.hpp"

#include <doctest/doctest.h>

#include "planner/commands/from_trace_command.hpp"
#include "tests/planner/support/traced_job.hpp"
#include "tests/run_program.hpp"

namespace trace_fit_test {

using costmodel::kernel_kind_count;
using costmodel::OwnRuns;
using costmodel::Scenario;
using planner::FittedTrace;

namespace {

using Factors = std::array<double, kernel_kind_count>;

FittedTrace fitted(const Factors& factors, double between = 5) {
  const program::Scratch scratch;
  scratch.write("t.json", traced_job::trace(factors, between));
  const Scenario s = traced_job::scenario();
  const auto plan = resolve_plan(s);
  return fit_trace(s, plan,
                   planner::read_job_trace({(scratch.path() / "t.json").string()},
                                           planner::attributor_of(s, plan)));
}

double launch_of(const Scenario& s) { return s.training.stack.host.kernel_launch.value; }

}  // namespace

TEST_CASE("a trace of what is predicted changes nothing") {
  Factors same;
  same.fill(1);
  const FittedTrace trace = fitted(same);
  CHECK(!trace.host_bound);
  for (const double factor : trace.run.kinds) CHECK(factor == doctest::Approx(1).epsilon(0.02));
}

TEST_CASE("planted factors come back, and the traced run is predicted as it was measured") {
  const FittedTrace trace = fitted({1.1, 0.9, 1.2, 0.95, 1.05, 0.9, 1.02, 1});
  CHECK(trace.run.kinds[0] == doctest::Approx(1.1).epsilon(0.01));
  CHECK(trace.run.kinds[2] == doctest::Approx(1.2).epsilon(0.01));
  const Scenario s = traced_job::scenario();
  const OwnRuns own = traced_constants({trace}, "torchtitan", costmodel::Seconds(launch_of(s)));
  CHECK(own.kernel_launch.value == 0);  // the device set the pace
  const auto after = predicted_times(with_constants(s, own), resolve_plan(s));
  CHECK(after.iteration / trace.unprofiled == doctest::Approx(1).epsilon(0.02));
  CHECK(std::abs(after.iteration / trace.unprofiled - 1) <
        std::abs(trace.before.iteration / trace.unprofiled - 1));
}

TEST_CASE(
    "where the device waits for the host, its launch is between the stack's and the trace's") {
  Factors same;
  same.fill(1);
  const double iteration = traced_job::predicted().iteration.value;
  const FittedTrace trace = fitted(same, 1e6 * iteration);  // eight launches an iteration
  REQUIRE(trace.host_bound);
  const Scenario s = traced_job::scenario();
  const costmodel::Seconds stack(launch_of(s));
  const OwnRuns own = traced_constants({trace}, "torchtitan", stack);
  CHECK(own.kernel_launch > stack);
  CHECK(own.kernel_launch < trace.launch);
  CHECK(launch_of(with_constants(s, own)) == doctest::Approx(own.kernel_launch.value));
}

TEST_CASE("a trace of another job is refused by its products") {
  const FittedTrace trace = fitted({1, 1, 1, 1, 1, 1, 1, 1});
  CHECK_NOTHROW(planner::refuse_other_job(trace));
  const costmodel::Seconds products = trace.read.times.kinds.front();
  FittedTrace strange = trace, lacking = trace;
  strange.read.times.left_over = {{"nvjet_tst", "aten::mm", products}};
  CHECK_THROWS_WITH(planner::refuse_other_job(strange),
                    doctest::Contains("sizes that this model does not have"));
  lacking.read.times.parts = {{planner::TracedPart::attention_products, false, products, 1}};
  CHECK_THROWS_WITH(planner::refuse_other_job(lacking),
                    doctest::Contains("has no products of the MLP, of which this job has"));
}

TEST_CASE(
    "a trace of another batch, micro-batch or recomputation is refused, with the key to set") {
  const FittedTrace trace = fitted({1, 1, 1, 1, 1, 1, 1, 1});
  FittedTrace twice = trace, rows = trace;
  twice.before.attentions *= 2;
  CHECK_THROWS_WITH(planner::refuse_other_job(twice),
                    doctest::Contains("runs attention forward 2 times an iteration, and this job 4 "
                                      "times"));
  CHECK_THROWS_WITH(planner::refuse_other_job(twice), doctest::Contains("plan.recompute"));
  const costmodel::Seconds products = trace.read.times.kinds.front();
  rows.read.times.parts = {{planner::TracedPart::attention_products, false, products * 0.4, 1},
                           {planner::TracedPart::mlp_products, false, products * 0.6, 1}};
  rows.read.times.other_rows = products * 0.6;
  CHECK_THROWS_WITH(planner::refuse_other_job(rows), doctest::Contains("set plan.micro_batch"));
  // As of a head whose loss is computed in pieces.
  rows.read.times.other_rows = products * 0.4;
  CHECK_NOTHROW(planner::refuse_other_job(rows));
}

TEST_CASE("constants of no trace are those of the configs") {
  const Scenario s = traced_job::scenario();
  const auto plan = resolve_plan(s);
  CHECK(predicted_times(with_constants(s, {}), plan).iteration ==
        predicted_times(s, plan).iteration);
}

}  // namespace trace_fit_test
