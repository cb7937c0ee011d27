// Arguments read from the table of a log.
#include "planner/frameworks/megatron_log.hpp"

#include <doctest/doctest.h>

#include "tests/planner/support/megatron_runs.hpp"

namespace megatron_log_test {

TEST_CASE("names become flags; what is off or None is left away") {
  REQUIRE(planner::holds_megatron_log(megatron_runs::log));
  const auto run = planner::read_megatron_log(megatron_runs::log, "x.log");
  CHECK(run.from_log);
  CHECK(run.world_size == 32);
  CHECK(run.find("--bf16") != nullptr);
  CHECK(run.find("--disable-bias-linear") != nullptr);
  CHECK(run.find("--no-overlap-p2p-communication") == nullptr);
  CHECK(run.find("--fp8-format") == nullptr);
  REQUIRE(run.find("--rotary-base") != nullptr);
  CHECK(run.find("--rotary-base")->values.front() == "500000");
  CHECK(run.find("--rotary-base")->mark.line == 27);
  CHECK_FALSE(planner::holds_megatron_log("no table"));
}

}  // namespace megatron_log_test
