// How a GPU's multiprocessors are dealt out.
#include "runtime/devices/virtual_devices.hpp"

#include <doctest/doctest.h>

#include <set>
#include <utility>

namespace virtual_devices_test {

using runtime::sm_rule;
using runtime::split_multiprocessors;

TEST_CASE("the 132 multiprocessors of an H200 are cut into multiples of 8") {
  const auto rule = sm_rule(9, 132);
  const std::pair<int, int> expected[]{{2, 64}, {3, 40}, {4, 32}, {8, 16}, {16, 8}};
  for (const auto& [devices, each] : expected) {
    const auto split = split_multiprocessors(rule, devices);
    CAPTURE(devices);
    CHECK(split.refused.empty());
    CHECK(split.each == each);
    CHECK(split.left == 132 - devices * each);
    CHECK(split.left >= 0);
  }
  CHECK(split_multiprocessors(rule, 1).each == 132);
  CHECK(split_multiprocessors(rule, 1).left == 0);
}

TEST_CASE("what cannot be cut says how far it can") {
  CHECK(split_multiprocessors(sm_rule(9, 132), 17).refused ==
        "17 virtual devices of 132 multiprocessors cannot be: each takes 8 at least, in multiples "
        "of 8, so that there are 16 at most");
  CHECK(split_multiprocessors(sm_rule(9, 132), 17).each == 0);
  CHECK_FALSE(split_multiprocessors(sm_rule(9, 132), 0).refused.empty());
  CHECK_FALSE(split_multiprocessors(sm_rule(9, 132), -2).refused.empty());
  // The most that is said can be had, for every count.
  for (int count = 8; count <= 160; ++count) {
    CHECK(split_multiprocessors(sm_rule(9, count), count / 8).refused.empty());
    CHECK_FALSE(split_multiprocessors(sm_rule(9, count), count / 8 + 2).refused.empty());
  }
}

TEST_CASE("older GPUs are cut finer") {
  CHECK(split_multiprocessors(sm_rule(8, 108), 16).each == 6);
  CHECK(split_multiprocessors(sm_rule(8, 108), 27).each == 4);
  CHECK_FALSE(split_multiprocessors(sm_rule(8, 108), 28).refused.empty());
  CHECK(split_multiprocessors(sm_rule(7, 80), 40).each == 2);
}

TEST_CASE("ranks fill one GPU after the other, each a place of its own") {
  std::set<std::pair<int, int>> places;
  for (int rank = 0; rank < 8; ++rank) {
    const auto at = runtime::virtual_place(rank, 2, 4);
    CHECK(at.gpu == rank / 4);
    CHECK(at.part < 4);
    CHECK(places.insert({at.gpu, at.part}).second);
  }
  CHECK(runtime::virtual_place(5, 2, 1).gpu == 1);  // in turn, where GPUs are whole
  CHECK(runtime::virtual_place(5, 2, 1).part == 0);
}

TEST_CASE("more ranks than virtual devices are refused") {
  CHECK(runtime::too_many_ranks(8, 2, 4).empty());
  CHECK(runtime::too_many_ranks(9, 1, 1).empty());  // whole GPUs are shared in turn
  CHECK(runtime::too_many_ranks(9, 2, 4) ==
        "9 ranks want a virtual device each, and 2 GPUs of 4 have 8");
}

}  // namespace virtual_devices_test
