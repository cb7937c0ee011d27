// What a rank holds over time, step by step.
#include "costmodel/schedule/held_over_time.hpp"

#include <doctest/doctest.h>

#include <vector>

namespace held_over_time_test {

using namespace costmodel;

namespace {

Event computed(const char* name, double from, double to) {
  return {0, Stream::compute, name, Seconds(from), Seconds(to)};
}

std::vector<HeldStep> steps_of(const Timeline& timeline) {
  return held_over_time(slices_of(timeline, timeline.ranks), timeline.memory.at(0));
}

void check(const HeldStep& step, double seconds, double micro_batches, double bytes) {
  CHECK(step.at == nanoseconds(Seconds(seconds)));
  CHECK(step.micro_batches == micro_batches);
  CHECK(step.bytes.value == bytes);
}

}  // namespace

TEST_CASE("a forward takes what its chunk keeps, a backward frees it, a weight gradient the rest") {
  const auto steps =
      steps_of({1,
                {computed("0F0", 0, 1), computed("0B0", 1, 2), computed("0W0", 3, 4)},
                {{Bytes(100), {{Bytes(30), Bytes(10)}}}}});
  REQUIRE(steps.size() == 3);
  check(steps[0], 0, 1, 130);
  check(steps[1], 2, 0, 110);
  check(steps[2], 4, 0, 100);
}

TEST_CASE("a micro-batch that follows at once takes the place of the one before") {
  const auto steps = steps_of(
      {1,
       {computed("0F0", 1, 2), computed("0B0", 2, 3), computed("0F1", 3, 4), computed("0B1", 4, 5)},
       {{Bytes(100), {{Bytes(30), {}}}}}});
  REQUIRE(steps.size() == 4);
  check(steps[0], 0, 0, 100);
  check(steps[1], 1, 1, 130);
  check(steps[2], 3, 1, 130);
  check(steps[3], 5, 0, 100);
}

TEST_CASE("of two chunks each counts as half a micro-batch, with bytes of its own") {
  const auto steps = steps_of(
      {1,
       {computed("0F0", 0, 1), computed("4F0", 1, 2), computed("4B0", 2, 3), computed("0B0", 3, 4)},
       {{Bytes(100), {{Bytes(30), {}}, {Bytes(7), {}}}}}});
  REQUIRE(steps.size() == 4);
  check(steps[0], 0, 0.5, 130);
  check(steps[1], 1, 1, 137);
  check(steps[2], 3, 0.5, 130);
  check(steps[3], 4, 0, 100);
}

TEST_CASE("a rank that computes nothing has no steps") {
  CHECK(
      steps_of(
          {1, {{0, Stream::optimizer, "optimizer step", Seconds(0), Seconds(1)}}, {{Bytes(1), {}}}})
          .empty());
}

}  // namespace held_over_time_test
