// Every site has a name of its own, and every node of every layer a site.
#include "costmodel/operators/site.hpp"

#include <doctest/doctest.h>

#include <set>
#include <string>

#include "costmodel/operators/transformer.hpp"
#include "tests/costmodel/support/fixtures.hpp"

namespace site_test {

using namespace costmodel;

TEST_CASE("names are there, and each once") {
  std::set<std::string_view> names;
  for (int i = 0; i < site_count; ++i) {
    const auto name = name_of(static_cast<Site>(i));
    CHECK_FALSE(name.empty());
    CHECK(names.insert(name).second);
  }
}

TEST_CASE("a layer's nodes stand at sites, each operator at one of its own") {
  const ModelSpec model = fixtures::gpt(2, 32, 4, 512, 16);
  for (const LayerKind kind : {LayerKind::embedding, LayerKind::block, LayerKind::head}) {
    std::set<Site> seen;
    for (const Node& node :
         build_layer(kind, model, fixtures::layer_context(2, true, 1, 16)).nodes) {
      CAPTURE(node.name());
      CHECK(node.site != Site::other);
      CHECK((seen.insert(node.site).second || std::holds_alternative<Collective>(node.op)));
    }
  }
}

}  // namespace site_test
