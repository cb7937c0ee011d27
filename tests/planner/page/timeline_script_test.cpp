#include "planner/page/timeline_script.hpp"

#include <doctest/doctest.h>

#include "tests/planner/support/pages.hpp"

namespace timeline_script_test {

TEST_CASE("the script writes text and styles only, and answers to keys, wheel and pointer") {
  const std::string script(planner::timeline_script());
  for (const char* word :
       {"innerHTML", "eval(", "fetch(", "import", "http", "document.write", "</"}) {
    CAPTURE(word);
    CHECK_FALSE(pages::has(script, word));
  }
  for (const char* word : {"'keydown'", "'wheel'", "'pointerdown'", "'pointermove'", "'click'"}) {
    CAPTURE(word);
    CHECK(pages::has(script, word));
  }
}

}  // namespace timeline_script_test
