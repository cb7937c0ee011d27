#include "planner/traces/operator_sizes.hpp"

#include <doctest/doctest.h>

namespace operator_sizes_test {

using planner::OperatorSizes;
using planner::sizes_of;

TEST_CASE("a list an input, lists of tensors flat, and of other text what can be read") {
  CHECK(sizes_of("[[8,4],[],[4,2]]") == OperatorSizes{{8, 4}, {}, {4, 2}});
  CHECK(sizes_of("[[8, 4], [4]]") == OperatorSizes{{8, 4}, {4}});
  CHECK(sizes_of("").empty());
  CHECK(sizes_of("17").empty());
  CHECK(sizes_of("[[1,[2,3").size() == 2);
}

}  // namespace operator_sizes_test
