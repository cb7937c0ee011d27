// Settings asked for by name, and what is left when nobody asks.
#include "planner/frameworks/setting_fields.hpp"

#include <doctest/doctest.h>

#include <array>
#include <string>
#include <string_view>

#include "costmodel/base/error.hpp"

namespace setting_fields_test {

constexpr std::array<std::string_view, 1> harmless{"log."};

TEST_CASE("the last setting counts, defaults stand in, and the rest is named") {
  planner::SettingFields fields({{"log.steps", {"10"}, {"x", 1, 1}, ""},
                                 {"training.a", {"1"}, {"x", 2, 1}, ""},
                                 {"training.a", {"2"}, {"x", 3, 1}, ""},
                                 {"training.b", {}, {"x", 4, 1}, "f"},
                                 {"training.off", {"false"}, {"x", 5, 1}, ""}},
                                harmless);
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
  planner::SettingFields fields({{"a", {"-1"}, {"x", 1, 1}, ""}}, {});
  CHECK(fields.number("a", 1, -1) == -1);
  CHECK_THROWS_AS(fields.number("a", 1), costmodel::ConfigError);
}

}  // namespace setting_fields_test
