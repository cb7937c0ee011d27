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
  CHECK_NOTHROW(planner::refuse_other_job(trace, traced_job::scenario()));
  const costmodel::Seconds products = trace.read.times.kinds.front();
  FittedTrace strange = trace, lacking = trace;
  strange.read.times.left_over = {{"nvjet_tst", "aten::mm", products}};
  CHECK_THROWS_WITH(planner::refuse_other_job(strange, traced_job::scenario()),
                    doctest::Contains("sizes that this model does not have"));
  lacking.read.times.parts = {{planner::TracedPart::attention_products, false, products, 1}};
  CHECK_THROWS_WITH(planner::refuse_other_job(lacking, traced_job::scenario()),
                    doctest::Contains("has no products of the MLP, of which this job has"));
}

TEST_CASE(
    "a trace of another batch, micro-batch or recomputation is refused, with the key to set") {
  const FittedTrace trace = fitted({1, 1, 1, 1, 1, 1, 1, 1});
  FittedTrace twice = trace, rows = trace;
  twice.before.attentions *= 2;
  CHECK_THROWS_WITH(planner::refuse_other_job(twice, traced_job::scenario()),
                    doctest::Contains("runs attention forward 2 times an iteration, and this job 4 "
                                      "times"));
  CHECK_THROWS_WITH(planner::refuse_other_job(twice, traced_job::scenario()),
                    doctest::Contains("plan.recompute"));
  const costmodel::Seconds products = trace.read.times.kinds.front();
  rows.read.times.parts = {{planner::TracedPart::attention_products, false, products * 0.2, 1},
                           {planner::TracedPart::mlp_products, false, products * 0.8, 1}};
  rows.read.times.other_rows = products * 0.6;
  CHECK_THROWS_WITH(planner::refuse_other_job(rows, traced_job::scenario()),
                    doctest::Contains("set plan.micro_batch"));
  // As of a head whose loss is computed in pieces.
  rows.read.times.other_rows = products * 0.4;
  CHECK_NOTHROW(planner::refuse_other_job(rows, traced_job::scenario()));
}

TEST_CASE("no launch is fitted where none would give the iteration that was measured") {
  const FittedTrace slow = fitted({0.3, 1, 1, 1, 1, 1, 1, 1});
  CHECK(slow.launch.value == 0);  // products, the most of it, are by a third as long
}

TEST_CASE("a trace of another device, precision or compiler is refused") {
  const FittedTrace trace = fitted({1, 1, 1, 1, 1, 1, 1, 1});
  const Scenario s = traced_job::scenario();
  const auto refused = [&](const FittedTrace& of, const Scenario& scenario) -> std::string {
    try {
      planner::refuse_other_job(of, scenario);
    } catch (const costmodel::ConfigError& error) {
      return error.what();
    }
    return "";
  };
  CHECK(refused(trace, s).empty());
  FittedTrace other = trace;
  other.read.device = "NVIDIA A100-SXM4-80GB";
  CHECK(refused(other, s).find("was recorded on 'NVIDIA A100-SXM4-80GB'") != std::string::npos);
  for (const char* device : {"NVIDIA H100 NVL", "", "a device of ours"}) {
    other.read.device = device;
    CHECK(refused(other, s).empty());
  }
  const costmodel::Seconds products = trace.read.times.kinds.front();
  other = trace;
  other.read.times.in_fp32 = products;
  CHECK(refused(other, s).find("multiplies matrices of fp32, and this job is in bf16") !=
        std::string::npos);
  other.read.times.in_fp32 = {};
  other.read.times.in_16_bits = products;
  CHECK(refused(other, s).empty());
  Scenario changed = s;
  changed.training.precision = costmodel::Precision::fp8;
  CHECK(refused(other, changed).find("of 16 bits, and this job is in fp8") != std::string::npos);
  changed = s;
  changed.training.overlap.compile = true;
  CHECK(refused(trace, changed).find("has no kernel of torch.compile") != std::string::npos);
  other.read.times.compiled = trace.read.times.kinds[3];
  CHECK(refused(other, changed).empty());
  CHECK(refused(other, s).find("this job is not compiled") != std::string::npos);
  other = trace;
  other.read.times.kinds.front() = {};
  CHECK(refused(other, s).find("no kernel that is known as a product") != std::string::npos);
  other = trace;
  other.read.times.parts = {{planner::TracedPart::mlp_products, false, products * 0.1, 1},
                            {planner::TracedPart::attention_products, false, products * 0.9, 1}};
  CHECK(refused(other, s).find("of products of the MLP, of which this job has") !=
        std::string::npos);
}

TEST_CASE("several iterations without a mark are distinguished from a job of another batch") {
  FittedTrace trace = fitted({1, 1, 1, 1, 1, 1, 1, 1});
  trace.before.attentions /= 3;
  trace.read.marked = false;
  CHECK_THROWS_WITH(planner::refuse_other_job(trace, traced_job::scenario()),
                    doctest::Contains("attention as often as 3 of them have"));
  trace.read.marked = true;
  CHECK_THROWS_WITH(planner::refuse_other_job(trace, traced_job::scenario()),
                    doctest::Contains("set training.global_batch"));
}

TEST_CASE("a rank of a pipeline is held against its own stages") {
  const Scenario s = scenarios::read(
      "model: {kind: llama, layers: 8, hidden: 2048, heads: 16, kv_heads: 4, ffn_hidden: 8192, "
      "vocab: 128000}\ncluster: {base: dgx-h100, devices: 4}\ntraining: {global_batch: 8, "
      "sequence: "
      "4096, precision: bf16, stack: megatron-core-2025}\nplan: {pp: 2, dp: 2, vpp: 2}\n");
  const auto plan = resolve_plan(s);
  const auto of = [&](int rank, planner::TracedPart part) {
    double sum = 0;
    for (const auto& each : predicted_times(s, plan, rank).parts)
      sum += each.part == part ? each.time.value : 0;
    return sum;
  };
  const auto logits = planner::TracedPart::logits_products, mlp = planner::TracedPart::mlp_products;
  CHECK(of(0, logits) == 0);
  CHECK(of(3, logits) > 0);  // the last two ranks are of the last pipeline rank
  CHECK(of(1, logits) == 0);
  CHECK(of(0, mlp) == doctest::Approx(of(3, mlp)));  // two stages of two layers each
  Scenario flat = s;
  flat.plan.pp = flat.plan.vpp = 1;
  flat.plan.dp = 2;
  flat.cluster.devices = 2;
  double all = 0;
  for (const auto& each : predicted_times(flat, resolve_plan(flat)).parts)
    all += each.part == mlp ? each.time.value : 0;
  CHECK(of(0, mlp) == doctest::Approx(all / 2));
}

TEST_CASE("constants of no trace are those of the configs") {
  const Scenario s = traced_job::scenario();
  const auto plan = resolve_plan(s);
  CHECK(predicted_times(with_constants(s, {}), plan).iteration ==
        predicted_times(s, plan).iteration);
}

}  // namespace trace_fit_test
