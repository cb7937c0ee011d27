// Events as slices: whole nanoseconds, and threads on which nothing overlaps.
#include "costmodel/schedule/trace_slices.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "tests/costmodel/support/fixtures.hpp"

namespace trace_slices_test {

using namespace costmodel;

TEST_CASE("times are whole nanoseconds, written as microseconds") {
  CHECK(nanoseconds(Seconds(1.2345678916)) == 1'234'567'892);
  CHECK(nanoseconds(Seconds(-2e-9)) == -2);
  CHECK(nanoseconds(Seconds(std::nan(""))) == 0);
  CHECK(nanoseconds(Seconds(std::numeric_limits<double>::infinity())) > 1'000'000'000'000'000'000);
  CHECK(as_microseconds(1'234'567) == "1234.567");
  CHECK(as_microseconds(1'000) == "1.000");
  CHECK(as_microseconds(7) == "0.007");
  CHECK(as_microseconds(-1'007) == "-1.007");
}

TEST_CASE("slices are those of the first ranks, by rank, stream and start") {
  const Timeline timeline{3,
                          {{2, Stream::compute, "2F0", Seconds(0), Seconds(1)},
                           {1, Stream::optimizer, "optimizer step", Seconds(0), Seconds(1)},
                           {1, Stream::compute, "1B0", Seconds(2), Seconds(3)},
                           {1, Stream::compute, "1F0", Seconds(1), Seconds(2)}}};
  const auto slices = slices_of(timeline, 2);
  REQUIRE(slices.size() == 3);
  CHECK(slices[0].event->name == "1F0");
  CHECK(slices[0].computes());
  CHECK(slices[1].action == Action{ActionKind::backward, 1, 0});
  CHECK_FALSE(slices[2].computes());
  CHECK(slices[2].thread() == static_cast<int>(Stream::optimizer));
}

TEST_CASE("whatever runs at the same time, no slices of a thread overlap, on few threads") {
  fixtures::Random random(5);
  Timeline timeline{4, {}};
  for (int i = 0; i < 600; ++i) {
    const double start = random.real(0, 1);
    timeline.events.push_back({random.integer(0, 3), static_cast<Stream>(random.integer(0, 3)),
                               "0F0", Seconds(start), Seconds(start + random.real(0, 0.05))});
  }
  std::map<std::pair<int, int>, Nanoseconds> end;
  std::map<std::pair<int, int>, std::size_t> together;  // the most at a moment, of a stream
  const auto slices = slices_of(timeline, 4);
  for (const Slice& slice : slices) {
    const auto last = end.find({slice.event->rank, slice.thread()});
    if (last != end.end()) CHECK(slice.start >= last->second);
    end[{slice.event->rank, slice.thread()}] = slice.end;
    std::size_t others = 0;
    for (const Slice& other : slices) {
      others += other.event->rank == slice.event->rank &&
                        other.event->stream == slice.event->stream && other.start <= slice.start &&
                        other.end > slice.start
                    ? 1
                    : 0;
    }
    auto& most = together[{slice.event->rank, static_cast<int>(slice.event->stream)}];
    most = std::max(most, others);
  }
  for (const Slice& slice : slices) {
    const std::pair key{slice.event->rank, static_cast<int>(slice.event->stream)};
    CHECK(static_cast<std::size_t>(slice.lane) < together[key]);  // no more lanes than needed
  }
  CHECK(slices.size() == 600);
}

}  // namespace trace_slices_test
