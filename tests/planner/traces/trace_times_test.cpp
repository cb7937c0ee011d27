#include "planner/traces/trace_times.hpp"

#include <doctest/doctest.h>

#include "tests/planner/support/traced_job.hpp"

namespace trace_times_test {

using planner::no_operator;
using planner::Trace;
using planner::TraceTimes;

namespace {

TraceTimes times(Trace& trace) {
  static const costmodel::Scenario scenario = traced_job::scenario();
  return times_of(trace, planner::Attributor(scenario.model, scenario.training, 4096));
}

void add(Trace& trace, const char* name, std::int64_t begin, std::int64_t length) {
  trace.kernels.push_back({trace.texts.of(name), no_operator, 0, begin, length, 0, 0});
}

}  // namespace

TEST_CASE(
    "what runs at the same time is busy once, and a collective is exposed where it is alone") {
  Trace trace;
  add(trace, "nvjet", 0, 100);
  add(trace, "ncclDevKernel_AllGather", 50, 100);
  add(trace, "elementwise", 200, 50);
  find_iterations(trace);
  const TraceTimes t = times(trace);
  CHECK(t.kernels.value == doctest::Approx(250e-9));
  CHECK(t.busy.value == doctest::Approx(200e-9));
  CHECK(t.communication.value == doctest::Approx(100e-9));
  CHECK(t.exposed.value == doctest::Approx(50e-9));
  CHECK(t.longest_gap.value == doctest::Approx(50e-9));
  CHECK(t.least_wall.value == doctest::Approx(250e-9));
}

TEST_CASE("times are of one iteration in the mean, and kernels outside of all are left out") {
  Trace trace;
  for (const std::int64_t at : {10, 110, 210}) add(trace, "nvjet", at, 30);
  trace.iterations = {{0, 100}, {100, 200}};
  const TraceTimes t = times(trace);
  CHECK(t.iterations == 2);
  CHECK(t.kinds[0].value == doctest::Approx(30e-9));
  CHECK(t.launches == 1);
}

TEST_CASE("a kernel of no operator is named with its time") {
  Trace trace;
  add(trace, "nvjet", 0, 90);
  add(trace, "stranger", 90, 10);
  find_iterations(trace);
  const TraceTimes t = times(trace);
  CHECK(t.attributed() / t.kernels == doctest::Approx(0.9));
  REQUIRE(t.left_over.size() == 1);
  CHECK(t.left_over.front().kernel == "stranger");
  CHECK(t.no_kind.value == doctest::Approx(10e-9));
}

TEST_CASE("iterations that are slower or lack kernels do not count, nor records outside of all") {
  Trace trace;
  for (const std::int64_t begin : {0, 1000, 2000}) {
    const std::int64_t length = begin == 0 ? 30 : 10;  // the first warms up
    for (int i = 0; i < 20; ++i)
      if (begin < 2000 || i < 10) add(trace, "nvjet", begin + 40 * i, length);
    trace.iterations.push_back({begin, begin + 900});
  }
  trace.calls = {5, 1005, 1006, 1950, 2005, 9000};
  const TraceTimes t = times(trace);
  CHECK(t.iterations == 1);
  CHECK(t.left_out == 2);
  CHECK(t.kinds[0].value == doctest::Approx(200e-9));
  CHECK(t.launches == 20);
  CHECK(t.host_records == 2);
  CHECK(t.least_wall.value == doctest::Approx(900e-9));
}

TEST_CASE(
    "products are distinguished by the type of their inputs, and kernels of a compiler by name") {
  Trace trace;
  const auto launched = [&](const char* kernel, const char* type) {
    trace.operators.push_back({trace.texts.of("aten::mm"), trace.texts.of(""), 0, no_operator,
                               100 * static_cast<std::int64_t>(trace.kernels.size()), 10,
                               trace.texts.of(type)});
    add(trace, kernel, 100 * static_cast<std::int64_t>(trace.kernels.size()), 10);
    trace.kernels.back().launcher = static_cast<std::uint32_t>(trace.operators.size() - 1);
  };
  launched("nvjet", "c10::BFloat16");
  launched("Cijk_Alik_Bljk_BBS_BH_MT128", "c10::BFloat16");  // of hipBLASLt
  launched("nvjet", "float");
  launched("nvjet", "c10::Float8_e4m3fn");
  launched("nvjet", "");
  launched("triton_poi_fused_mul_0", "c10::BFloat16");
  launched("triton_mine", "c10::BFloat16");
  find_iterations(trace);
  const TraceTimes t = times(trace);
  CHECK(t.in_16_bits.value == doctest::Approx(20e-9));
  CHECK(t.in_fp32.value == doctest::Approx(10e-9));
  CHECK(t.in_8_bits.value == doctest::Approx(10e-9));
  CHECK(t.compiled.value == doctest::Approx(10e-9));
  CHECK(t.kinds[0].value == doctest::Approx(50e-9));
}

}  // namespace trace_times_test
