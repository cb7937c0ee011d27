// Prediction and measurement side by side: errors, limits, and what there is without a prediction.
#include "runtime/run/comparison.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "tests/costmodel/support/fixtures.hpp"

namespace comparison_test {

using costmodel::Seconds;
using runtime::RunResult;

namespace {

// One pipeline rank on eight devices, which have no fp32.
RunResult result(double predicted, double measured) {
  RunResult r;
  r.scenario.cluster = fixtures::cluster(8);
  r.scenario.training = fixtures::training(16, 1024);
  r.scenario.cluster.device.peak[0] = {};
  r.predicted.iteration = Seconds(predicted);
  r.predicted.model_flops = costmodel::Flops(8e12);
  r.predicted.hardware_flops = costmodel::Flops(9e12);
  r.measured.iteration = Seconds(measured);
  r.predicted.stage_forward = r.predicted.stage_backward = {Seconds(predicted / 3)};
  r.measured.stage_forward = r.measured.stage_backward = {Seconds(measured / 3)};
  r.computed = false;
  return r;
}

}  // namespace

TEST_CASE("an error is told against the measurement, in percent") {
  const auto rows = compare(result(1.1, 1));
  REQUIRE(rows.front().key == "iteration_s");
  CHECK(*rows.front().error_pct == doctest::Approx(10));
  CHECK(*compare(result(0.5, 1)).front().error_pct == doctest::Approx(-50));
  CHECK_FALSE(compare(result(1, 0)).front().error_pct);
  CHECK(*compare(result(0, 0)).front().error_pct == 0);
}

TEST_CASE("a limit is missed in both directions, and without a prediction always") {
  CHECK(limit_missed(result(1.1, 1), 11) == "");
  CHECK(limit_missed(result(0.9, 1), 11) == "");
  CHECK(limit_missed(result(1.5, 1), 11) ==
        "the iteration time is predicted 50.0 % wrong, above --fail-above 11");
  CHECK(limit_missed(result(0.5, 1), 11) ==
        "the iteration time is predicted 50.0 % wrong, above --fail-above 11");
  CHECK(limit_missed(result(1, 0), 11) ==
        "the iteration time is predicted infinitely wrong, above --fail-above 11");
  CHECK(limit_missed(result(std::numeric_limits<double>::infinity(), 1), 50) ==
        "the iteration time is not predicted: the model gives no finite time, and so not within "
        "--fail-above 50");
}

TEST_CASE("what is not finite has no error, and a sentence says that it is not predicted") {
  CHECK(not_predicted(result(1, 1)) == "");
  for (const double none : {std::numeric_limits<double>::infinity(), std::nan("")}) {
    RunResult r = result(none, 1);
    CHECK(not_predicted(r) ==
          "the iteration time is not predicted: the model gives no finite time");
    r.scenario.training.precision = costmodel::Precision::fp32;
    CHECK(not_predicted(r) ==
          "the iteration time is not predicted: device test device has no fp32 rate");
    for (const auto& row : compare(r))
      if (row.key != "bubble_fraction") CHECK_FALSE(row.error_pct);
  }
}

TEST_CASE("throughput at the measured time has the prediction's FLOPs and peak") {
  RunResult r = result(1, 2);
  const costmodel::Estimate e = at_measured_time(r);
  CHECK(e.tokens_per_s == doctest::Approx(16 * 1024 / 2.0));
  CHECK(e.model_rate_per_device.value == doctest::Approx(8e12 / 2 / 8));
  const double peak = r.scenario.cluster.device.peak_of(costmodel::Precision::fp16).value;
  CHECK(e.mfu == doctest::Approx(8e12 / 2 / 8 / peak));
  CHECK(e.hfu == doctest::Approx(9e12 / 2 / 8 / peak));
}

}  // namespace comparison_test
