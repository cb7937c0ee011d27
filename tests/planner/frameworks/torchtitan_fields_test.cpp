// Settings asked for by name, and what is left when nobody asks.
#include "planner/frameworks/torchtitan_fields.hpp"

#include <doctest/doctest.h>

#include <string>

#include "costmodel/base/error.hpp"

namespace torchtitan_fields_test {

TEST_CASE("the last setting counts, defaults stand in, and the rest is named") {
  planner::TorchtitanFields fields({{"training.steps", {"10"}, {"x", 1, 1}, ""},
                                    {"training.a", {"1"}, {"x", 2, 1}, ""},
                                    {"training.a", {"2"}, {"x", 3, 1}, ""},
                                    {"training.b", {}, {"x", 4, 1}, "f"},
                                    {"training.off", {"false"}, {"x", 5, 1}, ""}});
  CHECK(fields.number("training.a", 7) == 2);
  CHECK(fields.number("training.c", 7) == 7);
  CHECK(fields.word("training.d", "w") == "w");
  CHECK(fields.written("training.a") == "training.a = 2");
  CHECK(fields.rest() == std::vector<std::string>{"training.b = f"});
  CHECK_THROWS_WITH_AS(fields.number("training.b", 1), doctest::Contains("x:4:1"),
                       costmodel::ConfigError);
  CHECK_THROWS_WITH_AS(fields.flag("training.a", true),
                       doctest::Contains("is neither true nor false"), costmodel::ConfigError);
}

TEST_CASE("minus one stands for what is left only where it may") {
  planner::TorchtitanFields fields({{"a", {"-1"}, {"x", 1, 1}, ""}});
  CHECK(fields.number("a", 1, -1) == -1);
  CHECK_THROWS_AS(fields.number("a", 1), costmodel::ConfigError);
}

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
