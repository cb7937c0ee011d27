// Copies of sharded parameters, against the bytes of the shipped kernels by hand.
#include "costmodel/estimate/shard_copies.hpp"

#include <doctest/doctest.h>

#include "costmodel/cost/kernel_time.hpp"
#include "costmodel/estimate/evaluator.hpp"
#include "tests/costmodel/support/scenarios.hpp"

namespace shard_copies_test {

using namespace costmodel;

namespace {

// Layers so long that no host binds them, and a launch that costs nothing.
Scenario scenario(int devices, int micro_batches, const std::string& stack = "base: torchtitan") {
  return scenarios::read(
      "model: {base: llama-3-8b, layers: 2}\n"
      "cluster: {base: dgx-h100, devices: " +
      std::to_string(devices) +
      "}\n"
      "training: {global_batch: " +
      std::to_string(devices * micro_batches) + ", sequence: 8192, precision: bf16, stack: {" +
      stack + ", launch: {kernel_s: 0, source: none}}}\n");
}

struct Copied {
  Seconds forward, backward;
};

Copied copied(const Scenario& s, int zero) {
  Evaluator evaluator(s.model, s.cluster, s.training);
  ParallelPlan plan;
  plan.dp = static_cast<int>(s.cluster.devices);
  plan.micro_batch = 1;
  plan.zero = zero;
  const StageRow& row = evaluator.cost(plan).stages[0];
  return {row.copies_forward, row.copies_backward};
}

// Of the two layers, the embedding and the head, each a unit that is gathered alone; of `all` of
// its elements and a `part` of its own shard.
Seconds by_hand(const Scenario& s, KernelOp op, bool forward, double all, double part,
                bool ends = true) {
  Evaluator evaluator(s.model, s.cluster, s.training);
  ParallelPlan plan;
  plan.dp = static_cast<int>(s.cluster.devices);
  plan.zero = 3;
  const double shards = plan.dp;
  Seconds sum;
  for (const LayerKind kind :
       {LayerKind::block, LayerKind::block, LayerKind::embedding, LayerKind::head}) {
    if (!ends && kind != LayerKind::block) continue;
    const double weights = evaluator.layer(kind, plan, Recomputed::nothing).weights;
    const auto time = kernel_time(s.training.stack.kernels.eager, op, forward, weights * all,
                                  weights / shards * part, 2, s.cluster.device);
    REQUIRE(time);
    sum += time->time;
  }
  return sum;
}

}  // namespace

TEST_CASE("ZeRO 3 gathers for forward and for backward, and scatters, on one rank too") {
  for (const int devices : {1, 8}) {
    CAPTURE(devices);
    const Scenario s = scenario(devices, 1);
    const Copied copies = copied(s, 3);
    // One rank uses what it gathers as it is, and copies its gradients in place of reducing them.
    const double out = devices > 1 ? 1 : 0;
    const Seconds unreduced =
        devices > 1 ? Seconds(0) : by_hand(s, KernelOp::unreduced, false, 1, 0);
    const Seconds gather = by_hand(s, KernelOp::shards, true, out, 1),
                  again = by_hand(s, KernelOp::shards, true, out, 1, false),
                  scatter = by_hand(s, KernelOp::shards, false, 1, 0);
    CHECK(copies.forward.value == doctest::Approx(gather.value));
    CHECK(copies.backward.value == doctest::Approx((again + scatter + unreduced).value));
    CHECK(again < gather);  // the root's parameters stay
  }
  // Of eight ranks each casts an eighth, and copies all out.
  CHECK(copied(scenario(8, 1), 3).forward < copied(scenario(1, 1), 3).forward);
}

TEST_CASE("ZeRO 2 gathers for forward alone, and plain data parallelism copies nothing") {
  const Scenario s = scenario(8, 1);
  CHECK(copied(s, 2).forward.value == copied(s, 3).forward.value);
  Scenario kept = s;  // whose ranks keep all parameters
  kept.training.stack.zero.regathers = false;
  CHECK(copied(kept, 2).forward.value == 0);
  CHECK(copied(s, 2).backward.value ==
        doctest::Approx(by_hand(s, KernelOp::shards, false, 1, 0).value));
  CHECK(copied(s, 0).forward.value == 0);
  CHECK(copied(s, 0).backward.value == 0);
}

TEST_CASE("gradients of every micro-batch after the first are added up") {
  const Scenario one = scenario(1, 1), four = scenario(1, 4);
  const Seconds sums = copied(four, 3).backward - copied(one, 3).backward;
  CHECK(sums.value ==
        doctest::Approx(by_hand(four, KernelOp::accumulate, false, 0, 0.75).value).epsilon(1e-6));
}

TEST_CASE("a stack that names no kernels copies nothing") {
  const Copied copies = copied(scenario(8, 4, "base: llm-foundry"), 3);
  CHECK(copies.forward.value == 0);
  CHECK(copies.backward.value == 0);
}

TEST_CASE("where the host binds a layer, its copies' launches count in full") {
  Scenario s = scenarios::read(
      "model: {base: llama-3.2-1b, layers: 2}\ncluster: {base: dgx-h100, devices: 1}\n"
      "training: {global_batch: 1, sequence: 512, precision: bf16, stack: torchtitan}\n");
  const Copied bound = copied(s, 3);
  s.training.stack.host.kernel_launch = Seconds(0);
  CHECK(bound.forward > copied(s, 3).forward);
}

}  // namespace shard_copies_test
