// Hybrid sharding (HSDP, MiCS) and Megatron-FSDP's second level (HFSDP): memory, traffic and time
// of two groups of eight ranks by hand.
#include <doctest/doctest.h>

#include "costmodel/cost/collective.hpp"
#include "costmodel/estimate/evaluator.hpp"
#include "costmodel/plan/mesh.hpp"
#include "tests/costmodel/support/fixtures.hpp"

namespace hybrid_sharding_test {

using namespace costmodel;

namespace {

constexpr double weight = 2, gradient = 2, states = 12;  // bytes of a parameter

ParallelPlan plan_of(int zero, int groups, OuterSharding outer = OuterSharding::no_shard) {
  ParallelPlan plan;
  plan.dp = 16;
  plan.zero = zero;
  plan.dp_replicate = groups;
  plan.outer_sharding = outer;
  return plan;
}

TrainingSpec training() {
  TrainingSpec training = fixtures::training(64, 512);
  training.stack.offers.hybrid_sharding = training.stack.offers.outer_optimizer_shards = true;
  return training;
}

const ModelSpec model = fixtures::gpt(8, 2048, 16, 51200, 512);

Evaluator evaluator() { return {model, fixtures::cluster(16), training()}; }

double parameters() { return evaluator().cost(plan_of(0, 1)).ranks.front().weights.all; }

}  // namespace

TEST_CASE("ZeRO shards within a group: an eighth on each rank, of 16") {
  const double psi = parameters();
  const auto memory = [](const ParallelPlan& plan) {
    return evaluator().cost(plan).ranks.front().memory;
  };
  const StageMemory all = memory(plan_of(3, 1)), groups = memory(plan_of(3, 2)),
                    further = memory(plan_of(3, 2, OuterSharding::optim));
  CHECK(all.weights.value == doctest::Approx(psi * weight / 16));
  CHECK(groups.weights.value == doctest::Approx(psi * weight / 8));
  CHECK(groups.gradients.value == doctest::Approx(psi * gradient / 8));
  CHECK(groups.optimizer.value == doctest::Approx(psi * states / 8));
  // Optimizer states / (inner x outer) + (gradients + weights) / inner (Megatron-FSDP, HFSDP).
  CHECK(further.optimizer.value == doctest::Approx(psi * states / 16));
  CHECK(further.gradients == groups.gradients);
  CHECK(further.weights == groups.weights);
  CHECK(groups.buffers == all.buffers);
  CHECK(memory(plan_of(1, 2)).optimizer.value == doctest::Approx(psi * states / 8));
  CHECK(memory(plan_of(1, 2)).weights.value == doctest::Approx(psi * weight));
}

TEST_CASE("bytes: ZeRO's within the group, a shard between the groups once an iteration") {
  const double psi = parameters(), m = 4, shard = psi / 8;
  const auto traffic = [](const ParallelPlan& plan) { return evaluator().estimate(plan).traffic; };
  const Traffic groups = traffic(plan_of(3, 2));
  CHECK(groups.all_gather.value == doctest::Approx(2 * m * 7 / 8 * psi * weight));
  CHECK(groups.reduce_scatter.value == doctest::Approx(m * 7 / 8 * psi * gradient));
  CHECK(groups.all_reduce.value == doctest::Approx(2.0 * 1 / 2 * shard * gradient));
  const Traffic further = traffic(plan_of(3, 2, OuterSharding::optim));
  CHECK(further.all_reduce.value == 0);
  CHECK(further.reduce_scatter.value ==
        doctest::Approx(groups.reduce_scatter.value + 1.0 / 2 * shard * gradient));
  CHECK(further.all_gather.value ==
        doctest::Approx(groups.all_gather.value + 1.0 / 2 * shard * weight));
  // Megatron-LM's instances of the distributed optimizer.
  const Traffic one = traffic(plan_of(1, 2));
  CHECK(one.reduce_scatter.value == doctest::Approx(7.0 / 8 * psi * gradient));
  CHECK(one.all_gather.value == doctest::Approx(7.0 / 8 * psi * weight));
  CHECK(one.all_reduce.value == doctest::Approx(shard * gradient));
}

TEST_CASE("time: nothing overlaps, so the reduction of a shard between nodes is its own time") {
  Evaluator its = evaluator();
  const ClusterSpec cluster = fixtures::cluster(16);
  const double psi = parameters();
  const GroupLayout between = Mesh(1, 16, 1, default_rank_order).between_shards(2, cluster);
  CHECK(between.size == 2);
  CHECK(between.stride == 8);
  const Seconds reduced =
      collective_time(CollectiveKind::all_reduce, Bytes(psi / 8 * gradient), between, cluster);
  const AfterPipeline after = its.cost(plan_of(3, 2)).ranks.front().after;
  CHECK(after.gradient_exposed.value == doctest::Approx(reduced.value));
  CHECK(after.gather_exposed.value == 0);
  const Seconds in_groups = its.estimate(plan_of(3, 2)).iteration,
                over_all = its.estimate(plan_of(3, 1)).iteration;
  CHECK(in_groups < over_all);  // each micro-batch's gathers stay within a node
  const AfterPipeline further = its.cost(plan_of(3, 2, OuterSharding::optim)).ranks.front().after;
  CHECK(further.gradient_exposed < after.gradient_exposed);
  CHECK(further.gather_exposed.value > 0);
}

// What is computed twice hides more of the reduction between groups, by what it lasts at most:
// within a node ZeRO's own collectives go beside it.
TEST_CASE(
    "recomputation makes no iteration faster, also where a reduction between groups is hidden") {
  TrainingSpec overlapped = training();
  overlapped.overlap.overlap_grad_reduce = overlapped.overlap.overlap_param_gather = true;
  for (const int groups : {2, 4, 8}) {
    for (const int zero : {2, 3}) {
      for (const auto outer : {OuterSharding::no_shard, OuterSharding::optim}) {
        if (outer == OuterSharding::optim && zero == 2) continue;
        CAPTURE(groups);
        CAPTURE(zero);
        Evaluator its(model, fixtures::cluster(16), overlapped);
        ParallelPlan plan = plan_of(zero, groups, outer);
        const Seconds without = its.estimate(plan).iteration;
        plan.recompute = {Recomputation::full, 0};
        CHECK(its.estimate(plan).iteration > without);
      }
    }
  }
}

TEST_CASE("experts are sharded over their own ranks of a group") {
  ModelSpec sparse = model;
  sparse.experts = 4, sparse.top_k = 2, sparse.expert_ffn_hidden = sparse.ffn_hidden;
  Evaluator its(sparse, fixtures::cluster(16), training());
  ParallelPlan plan = plan_of(3, 2);
  plan.ep = 4;
  const RankRow& rank = its.cost(plan).ranks.front();
  const double others = rank.weights.all - rank.weights.experts;
  REQUIRE(rank.weights.experts > 0);
  CHECK(plan.expert_shards() == 2);
  CHECK(rank.memory.weights.value ==
        doctest::Approx((others / 8 + rank.weights.experts / 2) * weight));
}

TEST_CASE("what groups, shards and the optimizer ask of each other") {
  const auto fault = [](const ParallelPlan& plan, const TrainingSpec& t = training(),
                        const ModelSpec& of = model) {
    const auto found = violations(plan, of, fixtures::cluster(16), t);
    return found.empty() ? std::string() : found.front().key + ": " + found.front().reason;
  };
  CHECK(fault(plan_of(3, 2)).empty());
  CHECK(fault(plan_of(3, 2, OuterSharding::optim)).empty());
  CHECK(fixtures::contains(fault(plan_of(3, 3)), "dp_replicate 3 does not divide dp 16"));
  CHECK(fixtures::contains(fault(plan_of(0, 2)), "nothing is sharded"));
  CHECK(fixtures::contains(fault(plan_of(2, 2, OuterSharding::optim)), "outer_dp_sharding: "));
  CHECK(fixtures::contains(fault(plan_of(3, 1, OuterSharding::optim)), "outer_dp_sharding: "));
  TrainingSpec without = training();
  without.stack.offers.outer_optimizer_shards = false;
  CHECK(fixtures::contains(fault(plan_of(3, 2, OuterSharding::optim), without),
                           "each group holds all states"));
  without.stack.offers.hybrid_sharding = false;
  CHECK(fixtures::contains(fault(plan_of(3, 2), without), "shards over all data-parallel ranks"));
  ModelSpec sparse = model;
  sparse.experts = 8, sparse.top_k = 2, sparse.expert_ffn_hidden = sparse.ffn_hidden;
  ParallelPlan experts = plan_of(3, 4);
  experts.ep = 8;
  CHECK(fixtures::contains(fault(experts, training(), sparse),
                           "does not divide the 2 ranks that hold the same experts"));
}

}  // namespace hybrid_sharding_test
