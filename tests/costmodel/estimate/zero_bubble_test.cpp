// Whole plans whose schedule splits the backward: time, bound, memory and where the model's ends
// lie.
#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "costmodel/estimate/evaluator.hpp"
#include "costmodel/estimate/json_estimate.hpp"
#include "costmodel/schedule/zero_bubble.hpp"
#include "tests/costmodel/support/fixtures.hpp"

namespace zero_bubble_test {

using namespace costmodel;
using fixtures::relative_error;

namespace {

constexpr ScheduleKind split_kinds[] = {ScheduleKind::zero_bubble_h1, ScheduleKind::zero_bubble_h2,
                                        ScheduleKind::zero_bubble_v};

ParallelPlan split_plan(ScheduleKind kind, int pp) {
  ParallelPlan plan;
  plan.pp = pp;
  plan.schedule = kind;
  plan.vpp = kind == ScheduleKind::zero_bubble_v ? 2 : 1;
  return plan;
}

// Micro-batches a rank holds at most when the plan's schedule is replayed.
double replayed(const Schedule& schedule, const HeldShares& shares, int rank) {
  double held = 0, most = 0;
  for (const Action& a : schedule.actions[static_cast<std::size_t>(rank)]) {
    const auto k = static_cast<std::size_t>(a.stage);
    if (a.kind == ActionKind::forward) held += shares.forward[k];
    if (a.kind == ActionKind::backward) held += shares.pending[k] - shares.forward[k];
    if (a.kind == ActionKind::weight_gradient) held -= shares.pending[k];
    most = std::max(most, held);
  }
  return most;
}

}  // namespace

TEST_CASE("zero bubble: memory is what the schedule may hold, and its first rank does hold it") {
  const ModelSpec model = fixtures::gpt(24, 1024, 16, 51200, 512);
  for (const auto recomputed : {Recomputation::none, Recomputation::full}) {
    for (const auto kind : split_kinds) {
      for (const int m : {1, 3, 8, 40}) {
        TrainingSpec training = fixtures::training(m, 512);
        training.stack.offers.zero_bubble = true;
        ParallelPlan plan = split_plan(kind, 4);
        plan.recompute.granularity = recomputed;
        Evaluator evaluator(model, fixtures::cluster(4), training);
        const PlanCost cost = evaluator.cost(plan);
        const auto schedule = generate(kind, 4, plan.vpp, m, cost.times, cost.shares);
        for (int rank = 0; rank < 4; ++rank) {
          CAPTURE(static_cast<int>(kind));
          CAPTURE(static_cast<int>(recomputed));
          CAPTURE(m);
          CAPTURE(rank);
          const auto at = static_cast<std::size_t>(rank);
          const double held = cost.ranks[at].memory.in_flight_micro_batches;
          const double real = replayed(schedule, cost.shares, rank);
          CHECK(held >= real - 1e-9);
          if (rank == 0 && recomputed == Recomputation::none) CHECK(held <= real + 0.8);
        }
      }
    }
  }
}

TEST_CASE("zero bubble: faster than 1F1B, never below its bound, and adds up") {
  // A vocabulary small enough that the last stage is not what everything waits for.
  const ModelSpec model = fixtures::gpt(22, 2048, 16, 16384, 1024);
  TrainingSpec training = fixtures::training(24, 1024);
  training.stack.offers.zero_bubble = true;
  training.overlap.pp_overlap = true;
  for (const bool validated_after : {false, true}) {
    training.stack.collectives.post_validation = validated_after;
    Evaluator evaluator(model, fixtures::cluster(8), training);
    ParallelPlan plain = split_plan(ScheduleKind::one_f_one_b, 8);
    const double before = evaluator.iteration_time(plain).value;
    double h1 = 0;
    for (const auto kind : {ScheduleKind::zero_bubble_h1, ScheduleKind::zero_bubble_h2}) {
      const ParallelPlan plan = split_plan(kind, 8);
      const Estimate e = evaluator.estimate(plan);
      CHECK(e.iteration.value < before);
      CHECK(relative_error(e.breakdown.total().value, e.iteration.value) <= 1e-9);
      CHECK(e.iteration.value >= evaluator.cost(plan).bound.iteration.value * (1 - 1e-9));
      CHECK(evaluator.iteration_time(plan).value == e.iteration.value);
      CHECK(e.breakdown.bubble.value >= 0);
      if (kind == ScheduleKind::zero_bubble_h1) h1 = e.iteration.value;
      if (kind == ScheduleKind::zero_bubble_h2 && validated_after) CHECK(e.iteration.value < h1);
    }
  }
}

TEST_CASE("zero bubble: without waiting for the norm no iteration is longer") {
  const ModelSpec model = fixtures::gpt(24, 1024, 16, 51200, 512);
  for (const auto kind : split_kinds) {
    TrainingSpec training = fixtures::training(32, 512);
    training.stack.offers.zero_bubble = true;
    const ParallelPlan plan = split_plan(kind, 4);
    const double waiting =
        Evaluator(model, fixtures::cluster(4), training).iteration_time(plan).value;
    training.stack.collectives.post_validation = true;
    const double apart =
        Evaluator(model, fixtures::cluster(4), training).iteration_time(plan).value;
    CHECK(apart <= waiting);
    if (kind == ScheduleKind::zero_bubble_h2) CHECK(apart < waiting * 0.99);
  }
}

TEST_CASE("zero-bubble-v: both ends of the model live on the first rank") {
  ModelSpec model = fixtures::gpt(24, 1024, 16, 51200, 512);
  model.tie_embeddings = true;
  TrainingSpec training = fixtures::training(32, 512);
  training.stack.offers.zero_bubble = true;
  Evaluator evaluator(model, fixtures::cluster(4), training);
  const PlanCost cost = evaluator.cost(split_plan(ScheduleKind::zero_bubble_v, 4));
  const double block =
      evaluator.layer(LayerKind::block, ParallelPlan{}, Recomputed::nothing).weights;
  CHECK(cost.tables.time.value == 0);  // one table
  CHECK(cost.ranks[3].weights.all == 6 * block);
  CHECK(cost.ranks[0].weights.all > 6 * block + 51200 * 1024.0);
  CHECK(cost.ranks[0].weights.all < 6 * block + 1.1 * 51200 * 1024.0);
}

TEST_CASE("the V's ranks are told by their own two stages") {
  ParallelPlan plan = split_plan(ScheduleKind::zero_bubble_v, 2);
  const auto times = by_rank({Seconds(1), Seconds(10), Seconds(100), Seconds(1000)}, plan);
  CHECK(times == std::vector<double>{1001, 110});
  plan.schedule = ScheduleKind::interleaved;
  CHECK(by_rank({Seconds(1), Seconds(10), Seconds(100), Seconds(1000)}, plan) ==
        std::vector<double>{101, 1010});
}

TEST_CASE("a rank without layers holds no micro-batches") {
  TrainingSpec training = fixtures::training(32, 512);
  training.stack.offers.zero_bubble = true;
  ParallelPlan plan = split_plan(ScheduleKind::zero_bubble_h1, 4);
  plan.stage_layers = {8, 0, 4, 4};
  Evaluator evaluator(fixtures::gpt(16, 1024, 16, 51200, 512), fixtures::cluster(4), training);
  const PlanCost cost = evaluator.cost(plan);
  CHECK(cost.ranks[1].memory.in_flight_micro_batches == 0);
  CHECK(cost.ranks[0].memory.in_flight_micro_batches > 0);
}

TEST_CASE("a very long zero-bubble schedule continued by its period stays above its bound") {
  const ModelSpec model = fixtures::gpt(8, 256, 8, 51200, 128);
  for (const auto kind : split_kinds) {
    TrainingSpec training = fixtures::training(40001, 128);
    training.stack.offers.zero_bubble = true;
    const ParallelPlan plan = split_plan(kind, 4);
    Evaluator evaluator(model, fixtures::cluster(4), training);
    const PlanCost cost = evaluator.cost(plan);
    REQUIRE(2 * cost.micro_batches * plan.virtual_stages() > most_simulated_actions / 8);
    const auto schedule = generate(kind, 4, plan.vpp, 40001, cost.times, cost.shares);
    std::vector<double> scratch;
    const double whole = simulate_makespan(compile(schedule), cost.times, scratch).value;
    const double end = evaluator.iteration_time(plan).value;
    CHECK(end >= cost.bound.iteration.value * (1 - 1e-9));
    CHECK(relative_error(end, whole) <= 1e-3);  // reductions and optimizer are that small here
  }
}

}  // namespace zero_bubble_test
