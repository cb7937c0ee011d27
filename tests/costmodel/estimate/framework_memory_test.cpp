// What frameworks make of memory: what their logs call it, how they lose the logits, when they
// shard, what they send to the host, how they dispatch to experts.
#include <doctest/doctest.h>

#include <algorithm>

#include "costmodel/estimate/evaluator.hpp"
#include "costmodel/estimate/pricing.hpp"
#include "costmodel/operators/op_list.hpp"
#include "costmodel/operators/transformer.hpp"
#include "tests/costmodel/support/fixtures.hpp"
#include "tests/costmodel/support/scenarios.hpp"

namespace framework_memory_test {

using namespace costmodel;
using fixtures::relative_error;

namespace {

const ModelSpec model = fixtures::gpt(16, 2048, 16, 51200, 1024);

ParallelPlan plan_of(int pp, int dp, int zero) {
  ParallelPlan plan;
  plan.pp = pp;
  plan.dp = dp;
  plan.zero = zero;
  return plan;
}

}  // namespace

TEST_CASE("what the allocator counts leaves out the contexts, and its tensors its reserve too") {
  StackMemory stack;
  stack.context = Bytes(2e9);
  stack.fragmentation = 0.25;
  const CountedPeak counted = counted_peak(Bytes(12e9), stack);
  CHECK(counted.reserved == Bytes(10e9));
  CHECK(counted.allocated == Bytes(8e9));
}

TEST_CASE("of the contexts, the allocator counts the workspaces of products") {
  StackMemory stack;
  stack.context = Bytes(2e9);
  stack.fragmentation = 0.25;
  const CountedPeak without = counted_peak(Bytes(12e9), stack),
                    counted = counted_peak(Bytes(12e9), stack, Bytes(1e9));
  CHECK(counted.reserved == without.reserved + Bytes(1e9));
  CHECK(counted.allocated == without.allocated + Bytes(1e9));
  stack.workspaces = 3;
  stack.expert_workspaces = 4;
  DeviceSpec device;
  device.workspace = Bytes(32e6);
  CHECK(workspaces(model, device, stack) == Bytes(3 * 32e6));
  ModelSpec experts = model;
  experts.experts = 8;
  CHECK(workspaces(experts, device, stack) == Bytes(7 * 32e6));
}

TEST_CASE("Megatron's loss works in one fp32 buffer, its fusion in two, PyTorch's in three") {
  LayerContext context = fixtures::layer_context(1, false, 4, 1024);
  const double logits = 4.0 * 1024 * 51200;
  const auto working = [&] {
    const Footprint f =
        footprint(build_layer(LayerKind::head, model, context), Recomputed::nothing);
    return (f.kept + f.backward_transient).value / logits;
  };
  const double hidden = 4.0 * 2048 / 51200;  // norm and its gradient, beside the logits
  CHECK(working() == doctest::Approx(6).epsilon(hidden));
  context.loss = LossKernel::native;
  CHECK(working() == doctest::Approx(10).epsilon(hidden));
  context.loss = LossKernel::flash;
  CHECK(working() == doctest::Approx(4).epsilon(hidden));
  context.loss = LossKernel::te;  // the gradient in the place of the logits
  CHECK(working() == doctest::Approx(2).epsilon(2 * hidden));
  context.loss = LossKernel::unfused;
  context.fp32_logits = true;
  CHECK(working() == doctest::Approx(12).epsilon(hidden));
}

TEST_CASE("FSDP2 in a pipeline is ZeRO-1: whole weights and gradients, gathered once") {
  TrainingSpec training = fixtures::training(64, 1024);
  const ClusterSpec cluster = fixtures::cluster(32);
  const Estimate apart = Evaluator(model, cluster, training).estimate(plan_of(4, 8, 1));
  training.stack.zero.whole_in_pipeline = true;
  Evaluator evaluator(model, cluster, training);
  const Estimate together = evaluator.estimate(plan_of(4, 8, 3));
  CHECK(relative_error(together.peak.value, apart.peak.value) <= 1e-12);
  CHECK(relative_error(together.iteration.value, apart.iteration.value) <= 1e-12);
  CHECK(relative_error(together.traffic.total().value, apart.traffic.total().value) <= 1e-12);
  CHECK(evaluator.estimate(plan_of(1, 32, 3)).peak < evaluator.estimate(plan_of(1, 32, 1)).peak);
}

TEST_CASE("gradients that are scattered behind the backward pass stand whole before") {
  TrainingSpec training = fixtures::training(64, 1024);
  const ClusterSpec cluster = fixtures::cluster(8);
  training.stack.zero.whole_gradients = true;
  Evaluator evaluator(model, cluster, training);
  const StageMemory one = evaluator.estimate(plan_of(1, 8, 1)).memory.front();
  const StageMemory three = evaluator.estimate(plan_of(1, 8, 3)).memory.front();
  CHECK(one.gradients == three.gradients);
  CHECK(relative_error(one.weights.value, 8 * three.weights.value) <= 1e-12);
}

TEST_CASE("16-bit weights that ZeRO 2 or the host hold in fp32 are on the device in full") {
  const auto weights = [](const std::string& plan) {
    const Scenario s = scenarios::read(
        "model: llama-3-8b\ncluster: {base: dgx-h100, devices: 4}\ntraining: {global_batch: 4, "
        "sequence: 2048, stack: peft, fine_tuning: {method: full}}\nplan: {dp: 4, micro_batch: 1, "
        "recompute: full, " +
        plan + "}\n");
    Evaluator evaluator(s.model, s.cluster, s.training);
    return evaluator.estimate(resolve_plan(s)).memory.front().weights;
  };
  const Bytes all = Bytes(2 * 8.03e9);
  for (const char* plan :
       {"zero: 2", "zero: 2, offload: optimizer", "zero: 0, offload: optimizer"}) {
    CAPTURE(std::string(plan));
    CHECK(relative_error(weights(plan).value, all.value) < 0.01);
  }
  CHECK(weights("zero: 3").value < all.value);
  // Casts of fp32 weights that each rank holds live while a layer works.
  CHECK(weights("zero: 0").value < 0.2 * all.value);
}

TEST_CASE("activations of layers leave the device for the host, and slow links show") {
  TrainingSpec training = fixtures::training(64, 1024);
  ClusterSpec cluster = fixtures::cluster(8);
  cluster.device.host_bandwidth = BytesPerSecond(1e15);
  ParallelPlan plan = plan_of(1, 8, 3);
  plan.micro_batch = 8;
  const Estimate kept = Evaluator(model, cluster, training).estimate(plan);
  plan.offload.activation_layers = 8;
  const Estimate sent = Evaluator(model, cluster, training).estimate(plan);
  CHECK(sent.peak < kept.peak);
  CHECK(sent.host > Bytes(0));
  CHECK(relative_error(sent.iteration.value, kept.iteration.value) <= 1e-9);
  cluster.device.host_bandwidth = BytesPerSecond(1e9);
  CHECK(Evaluator(model, cluster, training).estimate(plan).iteration > sent.iteration);
}

TEST_CASE("dispatch by products does top_k·group multiply-adds for each element") {
  ModelSpec moe = model;
  moe.kind = ModelKind::moe;
  moe.experts = 8;
  moe.top_k = 2;
  moe.expert_ffn_hidden = moe.ffn_hidden;
  LayerContext context = fixtures::layer_context(1, false, 4, 1024);
  const auto executed = [&] {
    const OpList list = build_layer(LayerKind::moe, moe, context);
    double sum = 0;
    for (const Node& node : list.nodes) sum += work_of(node.op, Pass::forward, 2).executed.value;
    return sum;
  };
  const double copied = executed();
  context.expert_group = 2048;
  const double each = 2.0 * 2 * 2048;  // dispatch, or combine
  CHECK(executed() - copied == doctest::Approx(2 * each * 4 * 1024 * 2048));
}

}  // namespace framework_memory_test
