// `collective`: sizes, and what it refuses.
#include "planner/commands/collective_command.hpp"

#include <doctest/doctest.h>

#include "tests/costmodel/support/fixtures.hpp"
#include "tests/planner/support/in_process.hpp"

namespace collective_command_test {

using fixtures::contains;
using in_process::printed;

TEST_CASE("sizes are nccl-tests' -b, -e and -f") {
  const auto all = planner::message_sizes("8:8GiB:2");
  REQUIRE(all.size() == 31);
  CHECK(all.front().value == 8);
  CHECK(all.back().value == 8589934592.0);
  CHECK(planner::message_sizes("1GiB") == std::vector{costmodel::Bytes(1073741824)});
  CHECK(planner::message_sizes("10:1000:10").size() == 3);
  CHECK(planner::message_sizes("8:8:2").size() == 1);
}

TEST_CASE("--table is the usual sizes, all is every primitive") {
  const std::string on = " --ranks 8 --cluster dgx-h100 --format csv";
  CHECK(printed("collective all-reduce --table" + on) ==
        printed("collective all-reduce --bytes 8:8GiB:2" + on));
  const std::string all = printed("collective all --bytes 1MiB" + on);
  for (const char* name : {"broadcast,", "scatter,", "gather,", "reduce,", "all-reduce,",
                           "all-gather,", "reduce-scatter,", "all-to-all,", "send,"})
    CHECK(contains(all, "\n" + std::string(name)));
}

TEST_CASE("bad input is refused with a remedy") {
  struct Bad {
    std::string command, message;
  };
  const std::string on = " --cluster dgx-h100", sized = " --bytes 1MiB --cluster dgx-h100";
  for (const Bad& bad : {
           Bad{"collective allreduce" + sized, "did you mean 'all-reduce'"},
           Bad{"collective ring" + sized, "there is no primitive 'ring'"},
           Bad{"collective all-reduce --bytes 1MiB", "lacks --cluster"},
           Bad{"collective all-reduce" + on, "lacks --bytes"},
           Bad{"collective all-reduce --table" + sized, "--table has sizes of its own"},
           Bad{"collective all-reduce --bytes 1furlong" + on, "is not a size in bytes"},
           Bad{"collective all-reduce --bytes 0" + on, "is not a size in bytes"},
           Bad{"collective all-reduce --bytes -5" + on, "bytes"},
           Bad{"collective all-reduce --bytes 8:4:2" + on, "ends before it begins"},
           Bad{"collective all-reduce --bytes 8:64:1" + on, "is not a factor"},
           Bad{"collective all-reduce --bytes 8:64" + on, "neither SIZE nor FROM:TO:FACTOR"},
           Bad{"collective all-reduce --ranks 1" + sized, "is not a number of ranks"},
           Bad{"collective all-reduce --ranks many" + sized, "is not a number of ranks"},
           Bad{"collective all-reduce --stride 0" + sized, "is not a number of ranks"},
           Bad{"collective all-reduce --bytes 1MiB --cluster dgx-h1000", "dgx-h100"},
           Bad{"collective all-reduce --set plan.tp=2" + sized, "collective has none"},
       }) {
    CAPTURE(bad.command);
    CHECK(contains(printed(bad.command), bad.message));
  }
}

TEST_CASE("a group that is asked for is one group: neighbours on a node stay there") {
  const auto of = [](const char* ranks) {
    return printed("collective all-reduce --bytes 1GiB --cluster dgx-h100 --ranks " +
                   std::string(ranks));
  };
  for (const char* inside : {"3", "6", "7"})
    CHECK(contains(of(inside), std::string(inside) + " nvlink"));
  CHECK(contains(of("16"), "8 nvlink x 2 infiniband"));
}

TEST_CASE("more ranks than the cluster has are said to be assumed") {
  const auto result = in_process::run(
      "shardplan collective all-gather --bytes 1MiB --ranks 16 --cluster pcie-8x-rtx-4090");
  REQUIRE(result.warnings.size() == 1);
  CHECK(contains(result.warnings.front(), "has 8 devices: its last tier is taken to join 16"));
}

}  // namespace collective_command_test
