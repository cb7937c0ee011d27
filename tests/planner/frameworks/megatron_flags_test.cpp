// The pinned list of flags.
#include "planner/frameworks/megatron_flags.hpp"

#include <doctest/doctest.h>

#include <algorithm>

namespace megatron_flags_test {

TEST_CASE("872 flags, sorted, none twice") {
  const auto& flags = planner::megatron_flags();
  CHECK(flags.size() == 872);
  CHECK(std::ranges::adjacent_find(flags, std::greater_equal<>()) == flags.end());
  CHECK(planner::is_megatron_flag("--num-layers"));
  CHECK_FALSE(planner::is_megatron_flag("num-layers"));
  CHECK_FALSE(planner::is_megatron_flag("--number-of-layers"));
}

}  // namespace megatron_flags_test
