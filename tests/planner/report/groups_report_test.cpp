// The report of `groups`: all groups in CSV, the beginning of long lists for people.
#include "planner/report/groups_report.hpp"

#include <doctest/doctest.h>

#include "tests/costmodel/support/fixtures.hpp"

namespace groups_report_test {

using fixtures::contains;
using namespace planner;

namespace {

costmodel::ParallelPlan sizes(int tp, int pp, int dp) {
  costmodel::ParallelPlan plan;
  plan.tp = plan.etp = tp;
  plan.pp = pp;
  plan.dp = dp;
  return plan;
}

}  // namespace

TEST_CASE("Megatron-LM's example as people read it") {
  const auto plan = sizes(2, 4, 2);
  const std::string text = groups_report({plan, costmodel::RankLayout::megatron}, {});
  CHECK(contains(text, "16 ranks: t 2 · p 4 · d 2, as Megatron-LM's"));
  CHECK(contains(text,
                 "8 data groups of 2, 2 apart: batches; gradients, where cp is 1\n"
                 "  [0,2] [1,3] [4,6] [5,7] [8,10] [9,11] [12,14] [13,15]\n"));
  CHECK(contains(text, "[0,4,8,12] [1,5,9,13] [2,6,10,14] [3,7,11,15]"));
}

TEST_CASE("long lists are cut for people and whole in CSV") {
  const auto plan = sizes(8, 16, 64);
  const GroupsOf of{plan, costmodel::RankLayout::megatron};
  const std::string text = groups_report(of, {});
  CHECK(contains(text, " more\n"));
  CHECK(contains(text, "[0,8,16,24,...,504]"));
  CHECK(text.size() < 10'000);
  // tensor, pipeline, data, context, data-context, model, embedding, position embedding
  CHECK(groups_rows(of).rows.size() == 1024 + 512 + 128 + 8192 + 128 + 64 + 512 + 512);
}

TEST_CASE("the network is that of the worst-placed group") {
  const auto plan = sizes(6, 1, 4);
  const costmodel::ClusterSpec cluster = fixtures::cluster(24);
  const GroupsOf of{plan, costmodel::RankLayout::megatron, &cluster};
  for (const auto& groups : process_groups(plan, of.layout)) {
    if (groups.kind == "tensor") CHECK(network_of(groups, of) == "between");  // ranks 6 to 11
    if (groups.kind == "context") CHECK(network_of(groups, of).empty());
  }
}

}  // namespace groups_report_test
