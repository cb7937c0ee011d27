#include "planner/page/page_style.hpp"

#include <doctest/doctest.h>

#include <string>

namespace page_style_test {

TEST_CASE("nothing may be loaded, and every part of a picture has a colour") {
  const std::string head(planner::report_head());
  CHECK(head.find("default-src 'none'") != std::string::npos);
  for (const char* part :
       {"compute", "recompute", "tp", "cp", "ep", "pp", "dp", "bubble", "imbalance", "optimizer",
        "other", "weights", "gradients", "activations", "buffers", "span", "point"}) {
    CAPTURE(part);
    const std::size_t at = head.find("." + std::string(part));
    REQUIRE(at != std::string::npos);
    CHECK(head.find("--c:", at) < head.find('}', at));
  }
}

}  // namespace page_style_test
