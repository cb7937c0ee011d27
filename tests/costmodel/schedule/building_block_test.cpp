// A building block repeated: every micro-batch six units after the one before.
#include "costmodel/schedule/building_block.hpp"

#include <doctest/doctest.h>

#include "costmodel/schedule/schedule.hpp"

namespace building_block_test {

using namespace costmodel;

TEST_CASE("one rank: down, up, and both backwards, a micro-batch after the other") {
  const auto block = [](int, int) -> BuildingBlock { return {0, 1, 2, 3}; };
  const ActionsByRank lists = repeated(block, {1, 2, 2});
  CHECK(to_text(Schedule{ScheduleKind::v_min, 1, 2, 2, lists}) ==
        "0F0 1F0 1B0 0B0 0F1 1F1 1B1 0B1\n");
  CHECK(forwards_before({0, 1, 2, 3}) == 2);
  CHECK(forwards_before({0, 7, 8, 20}) == 3);  // the next micro-batch's first forward at 6
}

}  // namespace building_block_test
