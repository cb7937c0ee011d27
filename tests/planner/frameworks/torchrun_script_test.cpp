// The head and the command of launch scripts.
#include "planner/frameworks/torchrun_script.hpp"

#include <doctest/doctest.h>

#include "tests/costmodel/support/fixtures.hpp"
#include "tests/planner/support/megatron_cases.hpp"

namespace torchrun_script_test {

using fixtures::contains;

TEST_CASE("one node needs no rendezvous, several do") {
  auto s = megatron::tiny_llama();
  const auto plan = megatron::small_plan();
  const std::string two = planner::torchrun_command(s, plan);
  CHECK(two.starts_with("torchrun --nproc-per-node 8 --nnodes 2 \\\n"));
  CHECK(contains(two, "--master-addr"));
  s.cluster.devices_per_node = 16;
  CHECK(planner::torchrun_command(s, plan) == "torchrun --nproc-per-node 16 --nnodes 1 \\\n");
}

TEST_CASE("the head names framework, notes and environment, each on a line") {
  auto s = megatron::tiny_llama();
  s.name = "two\nlines";
  const std::string head = planner::script_head(
      {.framework = "F 1", .where = "here", .notes = {"a\nb"}, .environment = {"A=1"}}, s,
      megatron::small_plan());
  CHECK(head.starts_with("#!/usr/bin/env bash\n# two\\nlines for F 1, as shardplan planned it:\n"));
  CHECK(contains(head, "# Run it here on each of the 2 nodes,\n"));
  CHECK(contains(head, "# Note: a\\nb\nset -euo pipefail\n\nexport A=1\n"));
}

}  // namespace torchrun_script_test
