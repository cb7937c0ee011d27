#include "planner/report/explain_boundaries.hpp"

#include <doctest/doctest.h>

#include "costmodel/estimate/evaluator.hpp"
#include "tests/costmodel/support/scenarios.hpp"

namespace explain_boundaries_test {

using planner::Explained;

namespace {

std::vector<Explained> rows_of(const std::string& plan, const std::string& model = "t5-3b") {
  const auto s = scenarios::read("model: " + model +
                                 "\ncluster: {base: dgx-a100, devices: 8}\ntraining: "
                                 "{global_batch: 32, sequence: 512, stack: megatron-core-2025" +
                                 (model == "t5-3b" ? ", decoder_sequence: 128}" : "}") +
                                 "\nplan: {" + plan + "}\n");
  costmodel::Evaluator evaluator(s.model, s.cluster, s.training);
  const auto plan_of_s = resolve_plan(s);
  return planner::explained_boundaries(plan_of_s, s, evaluator.cost(plan_of_s));
}

}  // namespace

TEST_CASE("what each rank sends, equal neighbours together") {
  const auto rows = rows_of("tp: 2, pp: 4, micro_batch: 4, split_rank: 2, sequence_parallel: true");
  REQUIRE(rows.size() == 3);
  CHECK(rows[0].symbol == "split");
  CHECK(rows[0].value == "2");
  CHECK(rows[0].from ==
        "the first rank of the decoder: Megatron-LM's --pipeline-model-parallel-split-rank 2");
  CHECK(rows[1].symbol == "send 0-1");
  CHECK(rows[1].value == "2 MiB");
  CHECK(rows[1].from == "(512 / 2, 4, 1024): the encoder's hidden states");
  CHECK(rows[2].symbol == "send 2");
  CHECK(rows[2].value == "2.5 MiB");
  CHECK(rows[2].from ==
        "(128 / 2, 4, 1024) and (512 / 2, 4, 1024): the decoder's hidden states, the encoder's "
        "output");
}

TEST_CASE("a rank of both stacks is no split; a rank of the loss alone gets the decoder's") {
  const auto mixed = rows_of("tp: 1, pp: 2, micro_batch: 1, stage_layers: [30, 18]");
  REQUIRE(mixed.size() == 1);
  CHECK(mixed[0].from.find("(128, 1, 1024) and (512, 1, 1024)") == 0);
  const auto loss = rows_of("tp: 1, pp: 2, micro_batch: 1, stage_layers: [48, 0]");
  REQUIRE(loss.size() == 1);
  CHECK(loss[0].from == "(128, 1, 1024): the decoder's hidden states");
  CHECK(rows_of("tp: 1, pp: 1").empty());
  CHECK(rows_of("tp: 1, pp: 2", "gpt3-6.7b").empty());
}

}  // namespace explain_boundaries_test
