// PyTorch's caching allocator, by the constants of c10/cuda/CUDACachingAllocator.cpp.
#include "costmodel/estimate/caching_allocator.hpp"

#include <doctest/doctest.h>

namespace caching_allocator_test {

using costmodel::Bytes;
using costmodel::CachingAllocator;

namespace {
constexpr double mebi = 1 << 20;
double reserved(const CachingAllocator& heap) { return heap.reserved().value / mebi; }
}  // namespace

TEST_CASE("segments: 2 MiB for up to 1, 20 for up to 10, then a request's own") {
  CachingAllocator small;
  small.allocate(Bytes(1));
  CHECK(small.allocated() == Bytes(512));
  CHECK(reserved(small) == 2);
  small.allocate(Bytes(mebi));
  CHECK(reserved(small) == 2);
  CachingAllocator medium;
  medium.allocate(Bytes(3 * mebi));
  CHECK(reserved(medium) == 20);
  medium.allocate(Bytes(9 * mebi));
  CHECK(reserved(medium) == 20);
  CachingAllocator large;
  large.allocate(Bytes(25 * mebi));
  CHECK(reserved(large) == 26);
}

TEST_CASE("a freed block is reused, split, and joined with its neighbours") {
  CachingAllocator heap;
  const auto first = heap.allocate(Bytes(100 * mebi));
  heap.free(first);
  const auto left = heap.allocate(Bytes(60 * mebi)), right = heap.allocate(Bytes(40 * mebi));
  CHECK(reserved(heap) == 100);
  CHECK(right == left + static_cast<CachingAllocator::Handle>(60 * mebi));
  heap.free(right);
  heap.free(left);
  CHECK(heap.allocate(Bytes(100 * mebi)) == first);
  CHECK(reserved(heap) == 100);
  CHECK(heap.allocated() == Bytes(100 * mebi));
}

TEST_CASE("what states take of freed activations, the next iteration's activations lack") {
  CachingAllocator heap;
  heap.free(heap.allocate(Bytes(100 * mebi)));  // an iteration's
  heap.allocate(Bytes(30 * mebi));              // the optimizer's states
  CHECK(reserved(heap) == 100);
  heap.allocate(Bytes(100 * mebi));
  CHECK(reserved(heap) == 200);
}

TEST_CASE("a stream's blocks are its own") {
  CachingAllocator heap;
  heap.free(heap.allocate(Bytes(50 * mebi), 0));
  heap.allocate(Bytes(50 * mebi), 1);
  CHECK(reserved(heap) == 100);
}

TEST_CASE("an expandable segment grows by what its last free block lacks") {
  CachingAllocator fixed, expandable(true);
  for (CachingAllocator* heap : {&fixed, &expandable}) {
    const auto a = heap->allocate(Bytes(40 * mebi)), b = heap->allocate(Bytes(40 * mebi));
    heap->free(a);
    heap->free(b);
    heap->allocate(Bytes(100 * mebi));
  }
  CHECK(reserved(fixed) == 180);
  CHECK(reserved(expandable) == 100);
}

}  // namespace caching_allocator_test
