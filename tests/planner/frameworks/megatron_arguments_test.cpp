// Arguments by their flag.
#include "planner/frameworks/megatron_arguments.hpp"

#include <doctest/doctest.h>

namespace megatron_arguments_test {

TEST_CASE("of a repeated flag the last one counts") {
  planner::MegatronArguments run;
  run.list = {{"--lr", {"1"}, {}, ""}, {"--bf16", {}, {}, ""}, {"--lr", {"2"}, {}, ""}};
  REQUIRE(run.find("--lr") != nullptr);
  CHECK(run.find("--lr")->values.front() == "2");
  CHECK(run.find("--fp16") == nullptr);
}

}  // namespace megatron_arguments_test
