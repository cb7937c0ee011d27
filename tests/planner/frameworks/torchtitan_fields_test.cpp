// Names of torchtitan of 2024.
#include "planner/frameworks/torchtitan_fields.hpp"

#include <doctest/doctest.h>

#include <string>

namespace torchtitan_fields_test {

TEST_CASE("names of 2024 are those of today") {
  planner::TorchtitanFields fields(
      {{"training.batch_size", {"3"}, {"x", 1, 1}, ""},
       {"experimental.pipeline_parallel_degree", {"4"}, {"x", 2, 1}, ""},
       {"experimental.other", {"5"}, {"x", 3, 1}, ""}});
  CHECK(fields.number("training.local_batch_size", 8) == 3);
  CHECK(fields.number("parallelism.pipeline_parallel_degree", 1) == 4);
  CHECK(fields.rest() == std::vector<std::string>{"experimental.other = 5"});
}

}  // namespace torchtitan_fields_test
