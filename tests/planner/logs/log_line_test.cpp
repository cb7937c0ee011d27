// Pieces of log lines.
#include "planner/logs/log_line.hpp"

#include <doctest/doctest.h>

namespace log_line_test {

using namespace planner;

TEST_CASE("a number behind a label: thousands, powers, units") {
  CHECK(number_after("memory: 66.91GiB(37.51%)  tps: 10,050  tflops: 314.71", "tps:") == 10050);
  CHECK(number_after("memory: 66.91GiB(37.51%)", "memory:") == 66.91);
  CHECK(number_after("elapsed_time_per_iteration_ms: 11.5K | tokens", "_ms:") == 11500);
  CHECK(number_after("cuda_max_memory_reserved: 547M", "reserved:") == 547e6);
  CHECK(number_after("CurrSamplesPerSec=8.00912418308922, Mem", "CurrSamplesPerSec=") ==
        8.00912418308922);
  CHECK(number_after("learning rate: 1.420000E-05 |", "learning rate:") == 1.42e-5);
  CHECK(number_after("sizes: 1,2,3", "sizes:") == 1);
  CHECK(number_after("lm loss: nan |", "lm loss:") == std::nullopt);
  CHECK(number_after("lm loss:", "lm loss:") == std::nullopt);
  CHECK(number_after("no such label", "tps:") == std::nullopt);
}

TEST_CASE("stamps with a fraction of a second count, across a midnight too") {
  const auto late = stamp_of("[2026-02-28 23:59:59,250] [INFO]");
  const auto early = stamp_of("[rank0]:[titan] 2026-03-01T00:00:01.500 - root");
  REQUIRE(late);
  REQUIRE(early);
  CHECK(*early - *late == doctest::Approx(2.25));
  CHECK_FALSE(stamp_of("[2026-03-28 14:13:05] iteration 1/ 2"));
  CHECK_FALSE(stamp_of("2026-13-28 14:13:05,1"));
  CHECK_FALSE(stamp_of("nothing"));
}

TEST_CASE("dotted rows of arguments and timers") {
  const auto row = dotted_row("  micro_batch_size ................................ 2");
  REQUIRE(row);
  CHECK(row->name == "micro_batch_size");
  CHECK(row->value == "2");
  const auto timer =
      dotted_row("    forward-compute ................................: (2584.92, 2735.66)");
  REQUIRE(timer);
  CHECK(timer->name == "forward-compute");
  CHECK(numbers_of(timer->value) == std::vector<double>{2584.92, 2735.66});
  const auto config = dotted_row(
      "[2024-01-01 10:00:00,000] [INFO] [config.py:1003:print]   train_batch_size ............. "
      "256");
  REQUIRE(config);
  CHECK(config->name == "train_batch_size");
  CHECK_FALSE(dotted_row("done with setup ..."));
  CHECK_FALSE(dotted_row("a sentence. Another"));
}

TEST_CASE("lists, cells and colours") {
  CHECK(numbers_of("[2, 8, 4]") == std::vector<double>{2, 8, 4});
  CHECK(numbers_of("adam").empty());
  const auto cells = cells_of("time (ms) | fwd: 1.5 | step: 2 ");
  REQUIRE(cells.size() == 3);
  CHECK(cells[1] == "fwd: 1.5");
  CHECK(cells[2] == "step: 2");
  CHECK(without_colors("\x1b[31mstep:  4\x1b[0m") == "step:  4");
  CHECK(without_colors("\x1b[") == "\x1b[");
}

}  // namespace log_line_test
