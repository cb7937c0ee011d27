// TOML as fields with their places.
#include "planner/frameworks/toml_settings.hpp"

#include <doctest/doctest.h>

#include <string>

#include "costmodel/base/error.hpp"

namespace toml_settings_test {

using planner::read_toml;

TEST_CASE("tables, numbers, lists of lists and comments, in the order written" *
          doctest::skip(!planner::reads_toml())) {
  const auto fields = read_toml(
      "[training]\nseq_len = 8_192  # tokens\nsteps = 10\n\n[a.b]\nlist = [[\"x\", \"y\"], "
      "[\"z\"]]\n"
      "flag = true\nrate = 1e-4\n",
      "x.toml");
  REQUIRE(fields.size() == 5);
  CHECK(fields[0].field == "training.seq_len");
  CHECK(fields[0].values == std::vector<std::string>{"8192"});
  CHECK(fields[0].mark.line == 2);
  CHECK(fields[1].field == "training.steps");
  CHECK(fields[2].values == std::vector<std::string>{"x y", "z"});
  CHECK(fields[3].values == std::vector<std::string>{"true"});
  CHECK(fields[4].values == std::vector<std::string>{"0.0001"});
}

TEST_CASE("what is no TOML is refused where it stands" * doctest::skip(!planner::reads_toml())) {
  CHECK_THROWS_WITH_AS(read_toml("[a]\nx = \n", "x.toml"), doctest::Contains("x.toml:2:"),
                       costmodel::ConfigError);
  CHECK_THROWS_WITH_AS(read_toml("[a]\nx = 1\nx = 2\n", "x.toml"), doctest::Contains("x.toml:3:"),
                       costmodel::ConfigError);
  std::string deep = "[a]\nx";
  for (int i = 0; i < 100'000; ++i) deep += ".x";
  CHECK_THROWS_WITH_AS(read_toml(deep + " = 1\n", "x.toml"),
                       "x.toml:2:66: is nested too deeply; torchtitan's sections have three levels",
                       costmodel::ConfigError);
}

TEST_CASE("a build without toml++ says so" * doctest::skip(planner::reads_toml())) {
  CHECK_THROWS_WITH_AS(read_toml("", "x.toml"), doctest::Contains("libtomlplusplus-dev"),
                       costmodel::ConfigError);
}

}  // namespace toml_settings_test
