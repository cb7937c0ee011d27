#include "costmodel/estimate/estimate.hpp"

#include <doctest/doctest.h>

namespace estimate_test {

using namespace costmodel;

TEST_CASE("the parts of a breakdown add up, and scale together") {
  Breakdown b;
  double next = 1, sum = 0;
  for (const auto part : breakdown_parts) {
    b.*part = Seconds(next);
    sum += next;
    next *= 2;  // no two sums of parts are equal
  }
  CHECK(b.total() == Seconds(sum));
  b *= 3;
  CHECK(b.total() == Seconds(3 * sum));
  CHECK(b.other == Seconds(3 * 1024));
}

TEST_CASE("a plan fits that takes all of the memory, and no byte more") {
  Estimate e;
  e.capacity = Bytes(100);
  e.peak = Bytes(100);
  CHECK(e.fits());
  e.peak = Bytes(101);
  CHECK_FALSE(e.fits());
}

}  // namespace estimate_test
