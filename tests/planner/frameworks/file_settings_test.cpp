// TOML and YAML as fields with their places.
#include "planner/frameworks/file_settings.hpp"

#include <doctest/doctest.h>

#include <string>

#include "costmodel/config/toml.hpp"

namespace file_settings_test {

using planner::read_toml;

TEST_CASE("tables, numbers, lists of lists and comments, in the order written" *
          doctest::skip(!costmodel::reads_toml())) {
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

TEST_CASE("YAML: maps, lists and numbers of 1.1; what has no value is not there") {
  const auto fields = planner::read_yaml(
      "a: {b: 500_000, c: '5_0'}\nlist: [x, y]\nempty:\nitems: [{path: p}]\n", "x.yaml");
  REQUIRE(fields.size() == 4);
  CHECK(fields[0].field == "a.b");
  CHECK(fields[0].values == std::vector<std::string>{"500000"});
  CHECK(fields[1].values == std::vector<std::string>{"5_0"});
  CHECK(fields[2].values == std::vector<std::string>{"x", "y"});
  CHECK(fields[3].field == "items");
  CHECK(fields[3].mark.line == 4);
}

}  // namespace file_settings_test
