// What passes between stages at least, held against what the cost model counts for whole plans.
#include "planner/search/mesh_transfer.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "costmodel/estimate/evaluator.hpp"
#include "tests/costmodel/support/scenarios.hpp"

namespace mesh_transfer_test {

using costmodel::Evaluator;
using costmodel::ParallelPlan;
using costmodel::Scenario;
using costmodel::StagePlan;
using planner::MeshTransfer;
using scenarios::mixed;
using scenarios::read;

namespace {

// Two stages in one group or in two, of these sizes, in both orders.
std::vector<ParallelPlan> plans_of(const Scenario& s, std::int64_t sequences) {
  std::vector<ParallelPlan> all;
  const std::vector<StagePlan> sizes{{1, 4, {}, 0, ""}, {2, 2, {}, 0, ""}, {4, 1, {}, 0, ""}};
  for (const StagePlan& a : sizes) {
    for (const StagePlan& b : sizes) {
      for (int front = 1; front < static_cast<int>(s.model.layers); ++front) {
        ParallelPlan plan;
        plan.pp = 2;
        plan.stages = {a, b};
        if (!s.cluster.groups.empty()) {
          plan.stages[0].group = s.cluster.groups[front % 2 == 0 ? 0 : 1].name;
          plan.stages[1].group = s.cluster.groups[front % 2 == 0 ? 1 : 0].name;
        }
        plan.stage_layers = {front, static_cast<int>(s.model.layers) - front};
        plan.dp = std::max(a.dp, b.dp);
        plan.micro_batch = sequences / plan.dp;
        plan.sequence_parallel = s.training.stack.offers.sequence_parallel;
        if (is_valid(plan, s.model, s.cluster, s.training)) all.push_back(plan);
      }
    }
  }
  return all;
}

}  // namespace

TEST_CASE("no transfer and no sum of the table takes less") {
  const std::string gpt = "model: {base: gpt2-medium, layers: 6}\n";
  const std::string t5 =
      "model: {kind: t5, encoder_layers: 3, decoder_layers: 4, hidden: 1024, heads: 16, "
      "ffn_hidden: 4096, vocab: 32128}\n";
  int checked = 0, exact = 0, tables = 0;
  for (const std::string& model : {gpt, t5}) {
    for (const std::string& cluster : {mixed(4, 4), mixed(4, 4, "1 GB/s"),
                                       std::string("cluster: {base: dgx-a100, devices: 8}\n")}) {
      for (const std::string stack : {"megatron-2021", "megatron-core-2025", "torchtitan"}) {
        std::string yaml = model;
        yaml += cluster;
        yaml += fmt::format(
            "training: {{global_batch: 16, sequence: 1024, {}precision: fp16, stack: {}}}\n",
            model == t5 ? "decoder_sequence: 256, " : "", stack);
        const Scenario s = read(yaml);
        const MeshTransfer transfer(s, 4);
        Evaluator evaluator(s.model, s.cluster, s.training);
        for (const ParallelPlan& plan : plans_of(s, 4)) {
          const costmodel::PlanCost& cost = evaluator.cost(plan);
          const bool join = !s.cluster.groups.empty();
          const int later = plan.stage_layers.front() + 1;
          const auto& passing = cost.boundaries.front();
          for (int k = 0; k < 2; ++k) {
            const int group = !join ? 0 : (plan.stage_layers.front() + k) % 2;
            const auto least = transfer.least(group, 4, join, later);
            ++checked;
            CHECK(least <= passing.forward.time * (1 + 1e-12));
            CHECK(least <= passing.backward.time * (1 + 1e-12));
            exact += least >= passing.forward.time * 0.999 ? 1 : 0;
            const auto sum = transfer.least_table(group, plan.stages[0].tp, join);
            if (k > 0) continue;
            CHECK(sum <= cost.tables.time * (1 + 1e-12));
            tables += sum.value > 0 ? 1 : 0;
          }
        }
      }
    }
  }
  CHECK(checked > 200);
  CHECK(exact > 40);
  CHECK(tables > 20);
}

}  // namespace mesh_transfer_test
