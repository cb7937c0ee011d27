// Logs as wholes: the steady state, stamps, lines of all ranks, nothing measured.
#include "planner/logs/training_log.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/costmodel/support/fixtures.hpp"

namespace training_log_test {

using namespace planner;
using costmodel::Seconds;

namespace {

std::string megatron(int number, double ms) {
  return fmt::format(
      " iteration {}/ 100 | consumed samples: 1 | elapsed time per iteration (ms): {} |\n", number,
      ms);
}

std::string titan(int number, const char* stamp, int tokens) {
  return fmt::format(
      "[titan] 2026-02-24 {} - root - INFO - step: {}  loss: 7  memory: 6.5GiB(3%)  tps: {}  mfu: "
      "1%\n",
      stamp, number, tokens);
}

TrainingLog parsed(const std::string& text) {
  return parse_training_log(text, "a.log", {64, 1000});
}

}  // namespace

TEST_CASE("the first ten iterations are the warm-up, or the first line of a piece") {
  std::string text;
  for (int n = 1; n <= 20; ++n) text += megatron(n, n <= 10 ? 5000 : 1000 + n);
  const auto whole = parsed(text);
  CHECK(whole.iterations.size() == 20);
  CHECK(whole.pace.warm_up == 10);
  CHECK(whole.pace.median.value == doctest::Approx(1.0155));
  const auto piece = parsed(megatron(70, 9000) + megatron(71, 1000) + megatron(72, 1010) +
                            megatron(73, 1020) + megatron(74, 990));
  CHECK(piece.pace.warm_up == 1);
  CHECK(piece.pace.counted == 4);
  CHECK(piece.pace.median.value == doctest::Approx(1.005));
}

TEST_CASE("slow iterations, and their rhythm") {
  std::vector<LoggedIteration> iterations;
  for (int n = 1; n <= 50; ++n)
    iterations.push_back({n, Seconds(n % 10 == 0 ? 2.0 : n % 2 == 0 ? 1.0 : 1.01)});
  Pace pace = pace_of(iterations);
  REQUIRE(pace.slow.size() == 4);
  CHECK(pace.slow.front().number == 20);
  CHECK(pace.period == 10);
  CHECK(pace.mean.value == doctest::Approx(pace.median.value + 0.1).epsilon(0.01));
  CHECK(pace.spread < 0.02);
  iterations[32].time = Seconds(3);
  pace = pace_of(iterations);
  CHECK(pace.slow.size() == 5);
  CHECK(pace.period == 0);
  CHECK(pace_of({}).counted == 0);
}

TEST_CASE("time stamps give the time of iterations, whatever the rates say") {
  const auto log = parsed(titan(10, "19:46:17,500", 500) + titan(20, "19:46:37,500", 500) +
                          titan(20, "19:46:37,501", 500) + titan(30, "19:46:57,500", 500) +
                          titan(40, "19:47:17,500", 500));
  CHECK(log.stamped);
  REQUIRE(log.iterations.size() == 3);
  CHECK(log.pace.median.value == doctest::Approx(2));
  CHECK(log.tokens_per_s_per_device == 500);
}

TEST_CASE("without stamps the rates and the size of an iteration give it") {
  const auto log =
      parsed("0/450, SamplesPerSec=7\n 0/451, SamplesPerSec=32\n 0/452, SamplesPerSec=32\n");
  CHECK_FALSE(log.stamped);
  CHECK(log.framework == "DeepSpeed");
  CHECK(log.pace.median.value == doctest::Approx(2));
}

TEST_CASE("a progress bar's lines end with a carriage return; every rank's line counts once") {
  const auto log = parsed(
      "Epoch 0: 1/9 [global_step=1, train_step_timing in s=9.0]\r"
      "Epoch 0: 2/9 [global_step=2, train_step_timing in s=0.5]\r"
      "Epoch 0: 2/9 [global_step=2, train_step_timing in s=0.7]\r"
      "Epoch 0: 3/9 [global_step=3, train_step_timing in s=0.6]\r");
  CHECK(log.iterations.size() == 3);
  CHECK(log.iterations[1].time.value == 0.5);
}

TEST_CASE("timers are medians over the tables") {
  std::string text = megatron(70, 1000);
  for (const char* least : {"100.0", "110.0", "900.0"})
    text += fmt::format("    forward-compute ...: ({}, 950.0)\n", least);
  const auto log = parsed(text);
  const LoggedPart* part = log.part(JobPart::forward);
  REQUIRE(part != nullptr);
  CHECK(part->least.value == doctest::Approx(0.11));
  CHECK(part->most.value == doctest::Approx(0.95));
  CHECK(log.part(JobPart::data) == nullptr);
}

TEST_CASE("figures that cannot be are passed over") {
  const auto log = parsed(
      " iteration 1e300/ 1 | elapsed time per iteration (ms): 1e308 | global batch size: 1e300 |\n"
      " iteration -5/ 1 | elapsed time per iteration (ms): -3 |\n" +
      megatron(7, 1000) +
      "    optimizer ...: (-1.0, 2.0)\n    forward-compute ...: (1e300, 1e300)\n"
      "[Rank 0] memory (MB) | allocated: 1 | max allocated: 1e300 | max reserved: -2\n" +
      std::string(100'000, '\x1b') + "[\n");
  REQUIRE(log.iterations.size() == 1);
  CHECK(log.iterations[0].number == 7);
  CHECK(log.pace.median.value == 1);
  CHECK(log.parts.empty());
  CHECK(log.settings.empty());
  CHECK(log.allocated.value == 0);
  CHECK(log.reserved.value == 0);
}

TEST_CASE("a log in which nothing is measured is refused with what was looked for") {
  const auto fault = fixtures::config_error([] { parsed("hello\nworld\n"); });
  CHECK(fault.starts_with("a.log: nothing measured"));
  CHECK(fixtures::contains(fault, "elapsed time per iteration (ms)"));
  CHECK(fixtures::contains(fault, "SamplesPerSec="));
  CHECK_FALSE(fixtures::config_error([] { read_training_log("/no/such.log", {}); }).empty());
}

}  // namespace training_log_test
