// How work on a device is timed, on one that only notes what it is asked to do.
#include "calibrate/measure/device_timer.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "runtime/devices/cpu_device.hpp"
#include "tests/calibrate/support/simulated_gpu.hpp"

namespace device_timer_test {

using calibrate::DeviceTimer;
using calibrate::StopRule;
using costmodel::Seconds;

namespace {

// Relative to the value, however small.
doctest::Approx about(double value) { return doctest::Approx(value).scale(0); }

struct Bench {
  simulated_gpu::Clock clock;
  simulated_gpu::Device device{clock};
  DeviceTimer timer{device, simulated_gpu::wall_clock(clock)};
  int runs = 0;
  std::vector<double> first;  // what the first runs take; the others 20 us

  void run() {
    const auto at = static_cast<std::size_t>(runs++);
    clock.work("run", at < first.size() ? first[at] : 20e-6);
  }
  calibrate::Timing cold(const StopRule& rule) {
    return timer.cold([this] { clock.note("before"); }, [this] { run(); }, rule);
  }
};

}  // namespace

TEST_CASE("before each run the caches are flushed, and then the operator before writes") {
  Bench bench;
  bench.timer.event_pair();
  bench.clock.noting = true;
  bench.device.memory().flushed = 0;
  const auto timing = bench.cold({.least = 20});
  CHECK(timing.repeats >= 20);
  CHECK(bench.device.memory().flushed == static_cast<std::size_t>(bench.runs) * DeviceTimer::usual);
  const auto& notes = bench.clock.notes;
  const std::vector<std::string> expected{"reduce", "before", "record", "run", "record"};
  for (std::size_t i = 0; i < notes.size(); ++i) {
    if (notes[i] != "run") continue;
    REQUIRE(i >= 3);
    CHECK(std::vector(notes.begin() + static_cast<std::ptrdiff_t>(i) - 3,
                      notes.begin() + static_cast<std::ptrdiff_t>(i) + 2) == expected);
  }
}

TEST_CASE("several runs are queued before a wait, and timed by the device's clock") {
  Bench bench;
  CHECK(bench.timer.event_pair().value == about(simulated_gpu::Streams::pair));
  const int waits = bench.clock.waits;
  const auto timing = bench.cold({.least = 64});
  CHECK(timing.median.value == about(20e-6));  // without what the events take
  CHECK(timing.repeats >= 64);
  CHECK(bench.clock.waits - waits < timing.repeats / 8);
}

TEST_CASE("what is over sooner than events can tell is not nothing") {
  Bench bench;
  const auto timing = bench.timer.cold([] {}, [] {}, {});
  CHECK(timing.median.value == about(0.5e-6));
}

TEST_CASE("runs before the times have settled are not counted") {
  Bench bench;
  bench.first = {1e-2, 1e-3, 40e-6};
  const auto timing = bench.cold({});
  CHECK(timing.least.value == about(20e-6));
  CHECK(timing.median.value == about(20e-6));
  CHECK(timing.relative_error < 1e-6);
  CHECK(bench.runs > timing.repeats + 3);
}

TEST_CASE("when time is up, two batches are measured still, and what takes long is not queued") {
  Bench bench;
  bench.first.assign(100, 0.5);
  const auto timing = bench.cold({.longest = Seconds(0)});
  CHECK(timing.repeats == 2);
  CHECK(bench.runs == 3);
}

TEST_CASE("only measuring counts as measuring") {
  Bench bench;
  CHECK(bench.timer.measuring() == Seconds(0));
  bench.clock.now += 100;
  const double begin = bench.clock.now;
  bench.cold({});
  CHECK(bench.timer.measuring().value == about(bench.clock.now - begin));
  const double cold = bench.timer.measuring().value;
  bench.clock.now += 100;
  bench.timer.queued([&] { bench.run(); }, {});
  bench.timer.once([&] { bench.run(); });
  CHECK(bench.timer.measuring().value == about(cold + bench.clock.now - begin - 100 - cold));
}

TEST_CASE("queued runs are counted apart, and nothing is flushed between them") {
  Bench bench;
  const std::size_t flushed = bench.device.memory().flushed;
  const auto timing = bench.timer.queued([&] { bench.run(); }, {});
  CHECK(timing.median.value == about(20e-6).epsilon(1e-2));
  CHECK(bench.runs > 200 * timing.repeats);  // 5 milliseconds' each
  CHECK(bench.device.memory().flushed == flushed);
}

TEST_CASE("a device without streams is timed by the wall clock") {
  runtime::CpuDevice cpu;
  double now = 0;
  DeviceTimer timer(
      cpu, [&] { return Seconds(now); }, 4096);
  int runs = 0;
  const auto timing = timer.cold([&] { now += 1; },
                                 [&] {
                                   ++runs;
                                   now += 1e-3;
                                 },
                                 {.longest = Seconds(100)});
  CHECK(timing.median.value == about(1e-3));
  CHECK(runs >= timing.repeats + 3);
  CHECK(timer.event_pair() == Seconds(0));
}

}  // namespace device_timer_test
