// Exchanges that a plan could make instead: DataParallel against DDP, and those of a tensor group.
#include "planner/report/explain_exchanges.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "costmodel/base/unit_text.hpp"
#include "costmodel/cost/collective.hpp"
#include "costmodel/estimate/evaluator.hpp"
#include "costmodel/plan/mesh.hpp"
#include "tests/costmodel/support/scenarios.hpp"

namespace explain_exchanges_test {

using costmodel::Bytes;
using costmodel::CollectiveKind;
using fixtures::contains;
using planner::Explained;

namespace {

std::vector<Explained> rows_of(const std::string& model, const std::string& plan) {
  const costmodel::Scenario s = scenarios::read(
      "model: " + model + "\ncluster: {base: dgx-a100, devices: 8}\n" +
      "training: {global_batch: 192, sequence: 1024, precision: fp16, stack: megatron-2021}\n" +
      "plan: " + plan + "\n");
  costmodel::Evaluator evaluator(s.model, s.cluster, s.training);
  return planner::other_exchanges(evaluator.estimate(resolve_plan(s)), s, evaluator);
}

const Explained* find(const std::vector<Explained>& rows, const std::string& symbol) {
  const auto at = std::ranges::find(rows, symbol, &Explained::symbol);
  return at == rows.end() ? nullptr : &*at;
}

}  // namespace

TEST_CASE("DataParallel moves the logits of the whole batch to card 0; DDP gradients alone") {
  const auto rows = rows_of("codeparrot-110m", "{dp: 8, micro_batch: 12}");
  const Explained* old = find(rows, "DataParallel");
  REQUIRE(old != nullptr);
  REQUIRE(find(rows, "DDP") != nullptr);
  // 8 x 12 x 1,024 tokens x 32,768 words x 2 bytes
  CHECK(contains(old->from, "for each of 2 micro-batches of 96 sequences"));
  CHECK(contains(old->from, "6 GiB"));
  CHECK(find(rows, "ring")->value == find(rows, "DDP")->value);
  CHECK(find(rows, "inputs") == nullptr);
}

TEST_CASE("a tensor group: inputs of 28 bytes a token, and a linear alone") {
  const auto rows = rows_of("gpt3-1.3b", "{tp: 4, dp: 2, micro_batch: 2}");
  const auto s = scenarios::read(
      "model: gpt3-1.3b\ncluster: {base: dgx-a100, devices: 8}\n"
      "training: {global_batch: 192, sequence: 1024, precision: fp16, stack: megatron-2021}\n");
  const auto group = costmodel::layout_of(4, 1, s.cluster);
  CHECK(find(rows, "inputs")->value ==
        format_seconds(
            collective_time(CollectiveKind::broadcast, Bytes(2048 * 28), group, s.cluster)));
  CHECK(find(rows, "columns alone")->value ==
        format_seconds(collective_time(CollectiveKind::all_gather, Bytes(2048.0 * 8192 * 2), group,
                                       s.cluster)));
  CHECK(find(rows, "columns, rows")->value == find(rows, "rows alone")->value);
  CHECK(find(rows, "DataParallel") == nullptr);  // it splits no model
}

}  // namespace explain_exchanges_test
