// What a chain of `base:` ends at, and what is written over it.
#include "costmodel/config/base_chain.hpp"

#include <doctest/doctest.h>

#include "costmodel/config/yaml.hpp"
#include "tests/costmodel/support/fixtures.hpp"
#include "tests/run_program.hpp"

namespace base_chain_test {

using namespace costmodel;

TEST_CASE("the map at the end and what is written over it stay apart") {
  const program::Scratch scratch;
  const std::string folder = scratch.path().string() + "/";
  scratch.write("end.yaml", "layers: 2\nhidden: 64\n");
  scratch.write("mid.yaml", "base: ./end.yaml\nhidden: 128\n");
  const Value top = parse_yaml("{base: " + folder + "mid.yaml, layers: 9}", "s.yaml");
  const BaseChain chain = follow_bases({}, "models", top);
  CHECK(chain.name == "mid");
  CHECK(to_yaml(chain.end) == "layers: 2\nhidden: 64\n");
  REQUIRE(chain.over.size() == 2);
  CHECK(to_yaml(chain.over[0]) == "hidden: 128\n");
  CHECK(to_yaml(chain.over[1]) == "layers: 9\n");
  CHECK(to_yaml(resolved(chain)) == "layers: 9\nhidden: 128\n");
}

TEST_CASE("a file alone and a map alone have nothing over them") {
  const program::Scratch scratch;
  scratch.write("end.yaml", "layers: 2\n");
  const std::string file = scratch.path().string() + "/end.yaml";
  CHECK(follow_bases({}, "models", scalar_value(file)).name == "end");
  CHECK(follow_bases({}, "models", scalar_value(file)).over.empty());
  const BaseChain map = follow_bases({}, "models", parse_yaml("{layers: 3}", "s.yaml"));
  CHECK(map.name.empty());
  CHECK(map.over.empty());
  CHECK(to_yaml(map.end) == "layers: 3\n");
}

TEST_CASE("the kind of a folder's files") { CHECK(singular("clusters") == "cluster"); }

}  // namespace base_chain_test
