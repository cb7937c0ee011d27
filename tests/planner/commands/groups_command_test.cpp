// `groups`: of a scenario and of sizes alone, and what it refuses.
#include "planner/commands/groups_command.hpp"

#include <doctest/doctest.h>

#include "tests/costmodel/support/fixtures.hpp"
#include "tests/planner/support/in_process.hpp"

namespace groups_command_test {

using fixtures::contains;
using in_process::printed;

TEST_CASE("a scenario's groups are those of its sizes, and say the network") {
  const std::string scenario = printed("groups gpt3-6.7b-two-nodes");
  CHECK(contains(scenario, "8 data groups of 2, 2 apart, over nvlink"));
  CHECK(contains(scenario, "4 pipeline groups of 4, 4 apart, over infiniband"));
  const std::string sizes = printed("groups --tp 2 --pp 4 --dp 2 --cluster dgx-a100");
  CHECK(sizes == scenario);
  CHECK(contains(printed("groups gpt3-6.7b-two-nodes --set plan.rank_order=tp-cp-ep-pp-dp"),
                 "8 data groups of 2, 8 apart, over infiniband"));
}

TEST_CASE("experts are split as the rest unless --etp says otherwise") {
  CHECK(contains(printed("groups --tp 2 --dp 4 --ep 4"), "2 expert groups of 4, 2 apart"));
  CHECK(contains(printed("groups --tp 2 --dp 4 --ep 4 --etp 1"), "2 expert groups of 4, 1 apart"));
}

TEST_CASE("bad sizes are refused with a remedy") {
  struct Bad {
    std::string command, message;
  };
  for (const Bad& bad :
       {Bad{"groups", "lacks a scenario or sizes"},
        Bad{"groups --tp 0",
            "0 is no parallel size; --tp, --pp, --dp, --cp, --ep and --etp take 1 to 1,000,000"},
        Bad{"groups --tp 1.5", "is no parallel size"},
        Bad{"groups --tp -2", "-2 is no parallel size"},
        Bad{"groups --tp 2 --ep 3", "ep 3 x etp 2 = 6 does not divide the 2 ranks"},
        Bad{"groups --tp 1000 --pp 1000 --dp 1000", "too many ranks to list"},
        Bad{"groups --tp 2 --order tp-pp", "is not an order of the axes"},
        Bad{"groups --tp 2 --dp 4 --pp 2 --ep 4 --order tp-cp-ep-pp-dp",
            "lays out the pipelines of experts otherwise"},
        Bad{"groups --tp 2 --layout vlm", "vllm"},
        Bad{"groups --tp 2 --dp 2 --ep 2 --layout vllm", "choose ep 4"},
        Bad{"groups --tp 2 --etp 2 --layout vllm", "leave --etp out"},
        Bad{"groups --tp 2 --order tp-cp-ep-dp-pp --layout vllm", "leave --order out"},
        Bad{"groups --tp 2 --cluster nowhere", "nowhere"},
        Bad{"groups gpt3-6.7b-two-nodes --tp 2", "--set plan.tp=2"},
        Bad{"groups --tp 2 --set plan.pp=2", "groups has none"},
        Bad{"groups llama-3-8b-a100-h100 --set plan={}", "stage 0 takes 16 devices"}}) {
    CAPTURE(bad.command);
    CHECK(contains(printed(bad.command), bad.message));
  }
}

}  // namespace groups_command_test
