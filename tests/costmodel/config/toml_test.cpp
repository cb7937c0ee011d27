// TOML as a tree.
#include "costmodel/config/toml.hpp"

#include <doctest/doctest.h>

#include <string>

namespace toml_test {

using costmodel::ConfigError;
using costmodel::parse_toml;

TEST_CASE("a document is a map with the places of its keys" *
          doctest::skip(!costmodel::reads_toml())) {
  const auto map = parse_toml("[a.b]\nlist = [[1, 2], []]\nwhen = 1979-05-27\n", "x.toml");
  REQUIRE(map.find("a") != nullptr);
  const auto* inner = map.find("a")->find("b");
  REQUIRE(inner != nullptr);
  REQUIRE(inner->find("list") != nullptr);
  CHECK(inner->find("list")->items.at(0).items.at(1).text == "2");
  CHECK(inner->find("list")->items.at(1).items.empty());
  CHECK(inner->find("when")->text == "?");
  CHECK(inner->entries.front().key_mark.line == 2);
}

TEST_CASE("what is no TOML is refused where it stands" * doctest::skip(!costmodel::reads_toml())) {
  CHECK_THROWS_WITH_AS(parse_toml("[a]\nx = \n", "x.toml"), doctest::Contains("x.toml:2:"),
                       ConfigError);
  CHECK_THROWS_WITH_AS(parse_toml("[a]\nx = 1\nx = 2\n", "x.toml"), doctest::Contains("x.toml:3:"),
                       ConfigError);
  std::string deep = "[a]\nx", lists = "x = ";
  for (int i = 0; i < 100'000; ++i) deep += ".x";
  for (int i = 0; i < 100'000; ++i) lists += "[";
  CHECK_THROWS_WITH_AS(parse_toml(deep + " = 1\n", "x.toml"),
                       "x.toml:2:66: is nested too deeply; allowed: up to 32 levels", ConfigError);
  CHECK_THROWS_WITH_AS(parse_toml(lists, "x.toml"), doctest::Contains("x.toml:1:"), ConfigError);
}

TEST_CASE("a build without toml++ refuses" * doctest::skip(costmodel::reads_toml())) {
  CHECK_THROWS_WITH_AS(parse_toml("", "x.toml"), doctest::Contains("libtomlplusplus-dev"),
                       ConfigError);
}

}  // namespace toml_test
