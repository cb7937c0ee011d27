// Which layers have experts, and which layers a stage holds, in Megatron-LM's words.
#include "planner/frameworks/megatron_pattern.hpp"

#include <doctest/doctest.h>

namespace megatron_pattern_test {

using planner::layers_of_layout;
using planner::layers_with_experts;
using Bools = std::vector<bool>;
using Ints = std::vector<int>;

TEST_CASE("layers with experts: one in N, or lists of Python") {
  CHECK(layers_with_experts("2", 5) == Bools{true, false, true, false, true});
  CHECK(layers_with_experts("([0]*3+[1]*2)", 5) == Bools{false, false, false, true, true});
  CHECK(layers_with_experts("[0,1]*2", 4) == Bools{false, true, false, true});
  CHECK_FALSE(layers_with_experts("[1]*4", 5));
  CHECK_FALSE(layers_with_experts("[2]", 1));
  CHECK_FALSE(layers_with_experts("[1]*99999999", 5));
  CHECK_FALSE(layers_with_experts("0", 5));
}

TEST_CASE("the decoder layers of each cell of a layout") {
  CHECK(layers_of_layout("Et*3|t*4|t*4|t*2,L") == Ints{3, 4, 4, 2});
  CHECK(layers_of_layout("Ett|(tt|)*2t,mL") == Ints{2, 2, 2, 1});
  CHECK(layers_of_layout("E|t*2|L") == Ints{0, 2, 0});
  CHECK_FALSE(layers_of_layout("Etx"));
  CHECK_FALSE(layers_of_layout("((((("));
  CHECK_FALSE(layers_of_layout("EL"));
}

}  // namespace megatron_pattern_test
