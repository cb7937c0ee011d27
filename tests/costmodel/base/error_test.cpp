// Messages of faults.
#include "costmodel/base/error.hpp"

#include <doctest/doctest.h>

#include "tests/costmodel/support/fixtures.hpp"

namespace error_test {

using namespace costmodel;

TEST_CASE("marks and messages") {
  CHECK(to_string(Mark{"a.yaml", 3, 7}) == "a.yaml:3:7");
  CHECK(to_string(Mark{"a.yaml", 0, 0}) == "a.yaml");
  CHECK(to_string(Mark{}) == "");
  CHECK(std::string(ConfigError({"a.yaml", 3, 7}, "x is wrong", "write y").what()) ==
        "a.yaml:3:7: x is wrong; write y");
  CHECK(std::string(ConfigError({}, "x is wrong", "").what()) == "x is wrong");
}

TEST_CASE("the place of an argument ends where its text ends") {
  CHECK(to_string(mark_of_argument("--set", "plan.tp=8")) == "--set plan.tp=8");
  CHECK(to_string(mark_of_argument("--set", "plan.tp ")) == "--set plan.tp");
  CHECK(to_string(mark_of_argument("--set", "a: b:: ")) == "--set a: b");
  for (const auto* blank : {"", " ", "   ", ":"})
    CHECK(to_string(mark_of_argument("--set", blank)) == "--set");
}

TEST_CASE("a failed check is an internal error that names the place and asks for a report") {
  CHECK_NOTHROW(SHARDPLAN_CHECK(1 + 1 == 2));
  try {
    SHARDPLAN_CHECK(1 + 1 == 3);
    FAIL("nothing was thrown");
  } catch (const InternalError& fault) {
    const std::string text = fault.what();
    CHECK(fixtures::contains(text, "1 + 1 == 3"));
    CHECK(fixtures::contains(text, "error_test.cpp:"));
    CHECK(fixtures::contains(text, "please report"));
  }
}

TEST_CASE("the nearest known name") {
  const std::vector<std::string> schedules{"ideal", "serial", "gpipe", "1f1b", "interleaved"};
  CHECK(nearest_name("interleavd", schedules) == "interleaved");
  CHECK(nearest_name("gpip", schedules) == "gpipe");
  CHECK(nearest_name("Ideal", schedules) == "ideal");
  CHECK(nearest_name("lf1b", schedules) == "1f1b");
  CHECK(nearest_name("1F1B", schedules) == "1f1b");
  CHECK(nearest_name("AdamW", {"adam", "sgd", "muon"}) == "adam");
  CHECK(nearest_name("dualpipe", schedules) == "");
  CHECK(nearest_name("", schedules) == "");
  CHECK(nearest_name("x", {}) == "");
  CHECK(nearest_name("--seq", {"--set", "--sequence", "--page"}) == "--sequence");
  CHECK(nearest_name("--sep", {"--set", "--sequence", "--page"}) == "--set");
  CHECK(nearest_name("llama3", {"gpt2", "llama-7b", "llama-3-8b"}) ==
        "llama-7b");  // the first that begins so
  CHECK(nearest_name("tensor_parallel", {"tp", "pp"}) == "");
  CHECK(nearest_name("rtx-4090", {"dgx-h100", "box-of-8-rtx-4090", "pcie-8x-rtx-4090"}) ==
        "pcie-8x-rtx-4090");  // the shortest that holds it
}

TEST_CASE("the list of known names is cut") {
  CHECK(known_names("b", {"a", "b"}) == "did you mean 'b'? known: a, b");
  CHECK(known_names("zzzz", {"a1", "b1", "c1"}, 2) == "known: a1, b1 and 1 more");
}

}  // namespace error_test
