// Timelines as text and chart. The text of one small run of each schedule is pinned in
// tests/golden.
#include "costmodel/schedule/timeline.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "costmodel/schedule/simulator.hpp"
#include "costmodel/schedule/zero_bubble.hpp"
#include "tests/golden.hpp"

namespace timeline_test {

using namespace costmodel;

namespace {

Timeline run(ScheduleKind kind, int p, int v, int m, double transfer = 0.25) {
  PipelineTimes times;
  for (int k = 0; k < p * v; ++k) {
    times.forward.emplace_back(1.0 / v);
    times.backward.emplace_back((k + 1 == p * v ? 2.5 : 2.0) / v);  // the head's stage is slower
  }
  times.transfer = Seconds(transfer);
  if (!splits_backward(kind)) return simulate_timeline(compile(generate(kind, p, v, m)), times);
  const auto n = times.forward.size();
  for (std::size_t k = 0; k < n; ++k) {  // the half of backward that is weight gradient
    times.weight_gradient.push_back(times.backward[k] / 2);
    times.backward[k] -= times.weight_gradient[k];
  }
  const HeldShares shares{std::vector<double>(n, 1.0 / v), std::vector<double>(n, 0.9 / v)};
  return simulate_timeline(compile(generate(kind, p, v, m, times, shares)), times);
}

}  // namespace

TEST_CASE("golden timelines") {
  CHECK(golden::compare("timeline_ideal.txt", to_text(run(ScheduleKind::ideal, 2, 1, 4))) == "");
  CHECK(golden::compare("timeline_serial.txt", to_text(run(ScheduleKind::serial, 2, 1, 4))) == "");
  CHECK(golden::compare("timeline_gpipe.txt", to_text(run(ScheduleKind::gpipe, 3, 1, 4))) == "");
  CHECK(golden::compare("timeline_1f1b.txt", to_text(run(ScheduleKind::one_f_one_b, 3, 1, 4))) ==
        "");
  CHECK(golden::compare("timeline_interleaved.txt",
                        to_text(run(ScheduleKind::interleaved, 2, 2, 4))) == "");
  CHECK(golden::compare("timeline_zero_bubble_h1.txt",
                        to_text(run(ScheduleKind::zero_bubble_h1, 3, 1, 4))) == "");
  CHECK(golden::compare("timeline_zero_bubble_v.txt",
                        to_text(run(ScheduleKind::zero_bubble_v, 2, 2, 3))) == "");
}

TEST_CASE("a difference from a golden file is shown") {
  CHECK(golden::first_difference("a\nb\nc\n", "a\nb\nc\n") == "");
  CHECK(golden::first_difference("a\nb\nc\n", "a\nx\nc\n", 1) == "@@ line 2 @@\n a\n-b\n+x\n");
  CHECK(golden::first_difference("a\nb\n", "a\n", 1) == "@@ line 2 @@\n a\n-b\n");
  CHECK(golden::first_difference("a\n", "a") == "the last line's end differs\n");
}

TEST_CASE("the text of an event") {
  Timeline timeline{
      2, {{1, Stream::data_parallel, "gradient reduction", Seconds(0.5), Seconds(1.25)}}};
  CHECK(to_text(timeline) == "rank 1 | 0.500000 1.250000 | data parallel | gradient reduction\n");
  CHECK(timeline.end().value == 1.25);
  CHECK(Timeline{}.end().value == 0);
}

TEST_CASE("the bubble is what the slowest rank's own work leaves of the pipeline's time") {
  // 0F0 0-1, 1F0 1-2, 1B0 2-4.5, 0B0 4.5-6.5: the slower rank is busy for 3.5 s.
  CHECK(bubble_fraction(run(ScheduleKind::gpipe, 2, 1, 1, 0)) ==
        doctest::Approx((6.5 - 3.5) / 3.5));
  CHECK(bubble_fraction(run(ScheduleKind::ideal, 3, 1, 4)) == 0);
  CHECK(bubble_fraction(Timeline{2, {}}) == 0);
  // Ranks that do not meet after an iteration: the longer span is rank 0's, from 0 to 6.5 s.
  const Timeline staggered{2,
                           {{0, Stream::compute, "0F0", Seconds(0), Seconds(3)},
                            {0, Stream::compute, "0B0", Seconds(4), Seconds(6.5)},
                            {0, Stream::optimizer, "optimizer step", Seconds(6.5), Seconds(20)},
                            {1, Stream::compute, "1F0", Seconds(3), Seconds(8)}}};
  CHECK(bubble_fraction(staggered) == doctest::Approx((8 - 5.5) / 5.5));
  CHECK(bubble_fraction(staggered, true) == doctest::Approx((6.5 - 5.5) / 5.5));
}

TEST_CASE("a chart has a row a rank, as wide as asked, idle where nothing runs") {
  const Timeline timeline =
      run(ScheduleKind::gpipe, 2, 1, 1, 0);  // 0F0 0-1, 1F0 1-2, 1B0 2-4.5, 0B0 4.5-6.5
  CHECK(to_chart(timeline, 13) == "   0 |ff.......BBBB|\n   1 |..ffBBBBB....|\n");
  CHECK(to_chart(Timeline{1, {}}, 3) == "   0 |...|\n");
}

TEST_CASE("letters of a chart have their share of the time, however short the actions") {
  for (const int micro_batches : {8, 37, 64, 200, 1000}) {
    const Timeline timeline = run(ScheduleKind::one_f_one_b, 4, 1, micro_batches, 0);
    for (const int columns : {73, 93, 100}) {
      CAPTURE(micro_batches);
      CAPTURE(columns);
      const std::string chart = to_chart(timeline, columns);
      const std::size_t row = static_cast<std::size_t>(columns) + 8;
      for (std::size_t rank = 0; rank < 4; ++rank) {
        const double ratio = rank == 3 ? 2.5 : 2;  // of the times of backward and forward
        const std::string line = chart.substr(rank * row, row);
        const auto f = static_cast<double>(std::ranges::count(line, 'f'));
        const auto b = static_cast<double>(std::ranges::count(line, 'B'));
        // Two columns of rounding, or a tenth of the ratio.
        CHECK(std::abs(b - ratio * f) <= std::max(2 * ratio, 0.1 * b));
      }
    }
  }
}

TEST_CASE("a chart that ends before the timeline is cut off there") {
  const Timeline timeline{1,
                          {{0, Stream::compute, "0F0", Seconds(0), Seconds(1)},
                           {0, Stream::compute, "0B0", Seconds(5), Seconds(9)}}};
  CHECK(to_chart(timeline, 4, Seconds(2)) == "   0 |ff..|\n");
}

}  // namespace timeline_test
