// A pipeline that passes from an encoder to its decoder at a rank: the layers and the tensors of
// each rank as Megatron-LM has them, what is refused, and the time of its schedules.
#include "costmodel/plan/split_rank.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "costmodel/estimate/evaluator.hpp"
#include "costmodel/schedule/closed_form.hpp"
#include "costmodel/schedule/simulator.hpp"
#include "tests/costmodel/support/scenarios.hpp"

namespace split_rank_test {

using namespace costmodel;
using fixtures::config_error;
using fixtures::contains;

namespace {

// Six layers of 512 before four: 64 tokens in, 32 out.
Scenario scenario(const std::string& plan, const std::string& model =
                                               "kind: t5, encoder_layers: 6, decoder_layers: 4, "
                                               "hidden: 512, heads: 8") {
  return scenarios::read("model: {" + model +
                         "}\ncluster: {base: dgx-a100, devices: 8}\n"
                         "training: {global_batch: 32, sequence: 64, decoder_sequence: 32, stack: "
                         "megatron-core-2025}\nplan: {" +
                         plan + "}\n");
}

ModelSpec stacks(std::int64_t encoder, std::int64_t decoder) {
  ModelSpec model;
  model.encoder_layers = encoder;
  model.decoder_layers = decoder;
  model.layers = encoder + decoder;
  return model;
}

Seconds sum(const std::vector<Seconds>& times) {
  return std::accumulate(times.begin(), times.end(), Seconds());
}

}  // namespace

TEST_CASE("the ranks before the split share the encoder, the others the decoder") {
  const ModelSpec model = stacks(6, 4);
  CHECK(split_layers(model, 4, 2) == std::vector{3, 3, 2, 2});
  CHECK(split_layers(model, 4, 3) == std::vector{2, 2, 2, 4});
  CHECK(split_layers(model, 2, 1) == std::vector{6, 4});
  CHECK(split_layers(model, 4, 1).empty());  // three ranks for four layers
  CHECK(split_layers(model, 6, 4).empty());  // four ranks for six layers
  for (const int none : {-1, 0, 4, 5}) CHECK(split_layers(model, 4, none).empty());
  CHECK(split_layers(model, 1, 1).empty());
}

TEST_CASE("a plan says where it splits, if it does") {
  const ModelSpec model = stacks(6, 4);
  ParallelPlan plan;
  const auto split = [&](std::vector<int> layers) {
    plan.pp = static_cast<int>(layers.size());
    plan.stage_layers = std::move(layers);
    return split_rank_of(plan, model);
  };
  CHECK(split({3, 3, 2, 2}) == 2);
  CHECK(split({2, 2, 2, 4}) == 3);
  CHECK(split({6, 4}) == 1);
  CHECK(split({2, 4, 2, 2}) == 0);  // ranks of the encoder that differ
  CHECK(split({3, 4, 2, 1}) == 0);  // a rank with layers of both
  CHECK(split({10}) == 0);
  CHECK(split({6, 4, 0}) == 0);
  plan.stage_layers = {6, 4};
  plan.pp = 4;  // a list that is not the plan's
  CHECK(split_rank_of(plan, model) == 0);
  plan.stage_layers.clear();
  CHECK(split_rank_of(plan, stacks(8, 8)) == 2);  // an equal split
  CHECK(split_rank_of(plan, stacks(12, 4)) == 3);
  CHECK(split_rank_of(plan, stacks(10, 6)) == 0);
  CHECK(split_rank_of(plan, stacks(0, 0)) == 0);
}

TEST_CASE("plan.split_rank gives the stages their layers; its mistakes have place and remedy") {
  CHECK(resolve_plan(scenario("pp: 4, tp: 1, split_rank: 2")).stage_layers ==
        std::vector{3, 3, 2, 2});
  const auto fault = [](const std::string& plan) {
    return config_error([&] { resolve_plan(scenario(plan)); });
  };
  CHECK(fault("pp: 4, tp: 1, split_rank: 0") ==
        "test.yaml:4:34: split_rank 0 of pp 4: one of the two has no rank; choose 1 to 3");
  CHECK(contains(fault("pp: 4, tp: 1, split_rank: 4"), "one of the two has no rank"));
  CHECK(contains(fault("pp: 1, tp: 1, split_rank: 1"), "choose pp 2 or more, or leave it out"));
  CHECK(contains(fault("pp: 4, tp: 1, split_rank: 1"),
                 "split_rank 1 leaves the decoder's 4 layers 3 ranks, which do not divide them; "
                 "choose split_rank among 2, 3, another pp, or write stage_layers"));
  CHECK(contains(fault("pp: 8, tp: 1, split_rank: 5"), "leaves the encoder's 6 layers 5 ranks"));
  CHECK(contains(fault("pp: 8, tp: 1, split_rank: 5"), "choose split_rank among 6,"));
  CHECK(contains(fault("tp: 1, split_rank: 2"), "whose size is not said; write plan.pp"));
  CHECK(contains(fault("pp: auto, tp: 1, split_rank: 2"), "whose size is not said"));
  CHECK(contains(fault("pp: 4, tp: 1, split_rank: 2, stage_layers: [3, 3, 2, 2]"),
                 "split_rank beside stage_layers; leave one of them out"));
  CHECK(contains(fault("pp: 4, tp: 1, split_rank: x"), "'x' is not a whole number"));
  CHECK(contains(fault("pp: 4, tp: 1, split_rank: auto"), "'auto' is not a whole number"));
  CHECK(contains(fault("pp: 2, vpp: 2, tp: 1, split_rank: 1"),
                 "Megatron-LM's interleaved schedule refuses it; set schedule: 1f1b and vpp: 1"));
  CHECK(contains(config_error([] {
                   scenarios::read(
                       "model: gpt-tiny\ncluster: {base: dgx-a100, devices: 8}\ntraining: "
                       "{global_batch: 32, sequence: 64}\nplan: {pp: 4, split_rank: 2}\n");
                 }),
                 "split_rank is of a model with an encoder and a decoder; leave it out"));
}

// get_tensor_shapes of core/pipeline_parallel/schedules.py (core 0.2 to 0.11), in tokens.
double tokens_sent(int rank, int split, double sequence, double decoder_sequence) {
  return rank < split ? sequence : decoder_sequence + sequence;
}

TEST_CASE("each rank sends what Megatron-LM's get_tensor_shapes says, both ways") {
  for (const int split : {2, 3}) {
    for (const int tp : {1, 2}) {
      const Scenario s = scenario("pp: 4, micro_batch: 2, split_rank: " + std::to_string(split) +
                                  ", tp: " + std::to_string(tp) +
                                  ", sequence_parallel: " + (tp > 1 ? "true" : "false"));
      Evaluator evaluator(s.model, s.cluster, s.training);
      const ParallelPlan plan = resolve_plan(s);
      const PlanCost& cost = evaluator.cost(plan);
      REQUIRE(cost.boundaries.size() == 3);
      for (int rank = 0; rank < 3; ++rank) {
        const double bytes = tokens_sent(rank, split, 64, 32) / tp * 2 * 512 * 2;
        const StageBoundary& own = cost.boundaries[static_cast<std::size_t>(rank)];
        CHECK(own.forward.sent.value == bytes);
        CHECK(own.backward.sent.value == bytes);
      }
    }
  }
}

TEST_CASE(
    "GPipe and 1F1B of an encoder and a decoder: even stages by the papers' bubble, and GPipe "
    "of any stages by its recurrence") {
  const Scenario s = scenario("pp: 4, tp: 1, micro_batch: 2, split_rank: 2");
  Evaluator evaluator(s.model, s.cluster, s.training);
  PipelineTimes times = evaluator.cost(resolve_plan(s)).times;
  times.transfer = {};
  times.forward_transfer.clear();
  times.backward_transfer.clear();
  REQUIRE(times.forward.size() == 4);
  CHECK(times.forward[0] != times.forward[3]);
  constexpr int m = 16;
  std::vector<double> scratch;
  const auto simulated = [&](ScheduleKind kind) {
    return simulate_makespan(compile(generate(kind, 4, 1, m)), times, scratch).value;
  };
  // Identical jobs through machines in line: all of them once, then the slowest m - 1 times.
  const auto slowest = [](const std::vector<Seconds>& t) { return *std::ranges::max_element(t); };
  const Seconds flow = sum(times.forward) + (m - 1) * slowest(times.forward) + sum(times.backward) +
                       (m - 1) * slowest(times.backward);
  CHECK(simulated(ScheduleKind::gpipe) == doctest::Approx(flow.value).epsilon(1e-9));
  const Seconds forward = sum(times.forward) / 4, backward = sum(times.backward) / 4;
  times.forward.assign(4, forward);
  times.backward.assign(4, backward);
  for (const ScheduleKind kind : {ScheduleKind::gpipe, ScheduleKind::one_f_one_b}) {
    const double bubble = simulated(kind) - m * (forward + backward).value;
    CHECK(bubble == doctest::Approx(3 * (forward + backward).value).epsilon(1e-9));
  }
}

}  // namespace split_rank_test
