// What of a plan and a workload the price of operators needs.
#include <doctest/doctest.h>

#include "costmodel/estimate/pricing.hpp"
#include "tests/costmodel/support/fixtures.hpp"

namespace pricing_test {

using namespace costmodel;

Workload workload() {
  return {fixtures::gpt(24, 1024, 16, 51200, 512), fixtures::cluster(64),
          fixtures::training(64, 512)};
}

TEST_CASE("a kernel takes the host's launch, the framework's if longer, or a graph's replay") {
  Workload on = workload();
  CHECK(kernel_launch(on).value == 5e-6);
  on.training.stack.host.kernel_launch = Seconds(7e-6);
  CHECK(kernel_launch(on).value == 7e-6);
  on.training.overlap.cuda_graph = true;
  on.cluster.device.graph_kernel_launch = Seconds(1e-6);
  CHECK(kernel_launch(on).value == 1e-6);
}

TEST_CASE("a pipeline leaves the node where the plan has more devices than one") {
  ParallelPlan plan;
  plan.tp = 8;
  CHECK(!pipeline_leaves_node(plan, fixtures::cluster(64)));
  plan.pp = 2;
  CHECK(pipeline_leaves_node(plan, fixtures::cluster(64)));
  plan.tp = 4;
  CHECK(!pipeline_leaves_node(plan, fixtures::cluster(64)));
}

TEST_CASE("a framework may keep whole weights in a pipeline, and repeat half of its layers") {
  ParallelPlan plan;
  plan.zero = 3;
  plan.recompute = {Recomputation::selective, 0};
  StackSpec stack;
  CHECK(plan_as_run(plan, stack) == plan);
  stack.zero.whole_in_pipeline = stack.memory.selective_half = true;
  CHECK(plan_as_run(plan, stack).zero == 3);
  CHECK(plan_as_run(plan, stack).recompute.granularity == Recomputation::full);
  plan.pp = 2;
  CHECK(plan_as_run(plan, stack).zero == 1);
}

TEST_CASE("gradients join a buffer but with ZeRO-3, by a kernel of its own where none is fused") {
  Workload on = workload();  // gradients in 16 bits
  on.training.stack.kernels.fused_accumulation = false;
  ParallelPlan plan;
  CHECK(pricing_of(plan, on).accumulation_bytes == 6);
  on.training.stack.kernels.fused_accumulation = true;
  CHECK(pricing_of(plan, on).accumulation_bytes == 1);
  on.training.gradient_precision = Precision::fp32;
  CHECK(pricing_of(plan, on).accumulation_bytes == 3);
  // Read and write 4 bytes, and read 2.
  on.training.stack.kernels.accumulation_bytes = 10;
  CHECK(pricing_of(plan, on).accumulation_bytes == 10);
  on.training.gradient_precision = Precision::bf16;
  CHECK(pricing_of(plan, on).accumulation_bytes == 1);
  plan.zero = 3;
  CHECK(pricing_of(plan, on).accumulation_bytes == 1);  // nothing scatters them
  plan.dp = 2;
  CHECK(pricing_of(plan, on).accumulation_bytes == 0);
}

TEST_CASE("the context of a layer has the plan's sizes and the training's") {
  ParallelPlan plan;
  plan.tp = 2, plan.cp = 4, plan.micro_batch = 3, plan.sequence_parallel = true;
  const LayerContext context = context_of(plan, workload());
  CHECK(context.tp == 2);
  CHECK(context.cp == 4);
  CHECK(context.micro_batch == 3);
  CHECK(context.sequence_parallel);
  CHECK(context.sequence == 512);
  CHECK(context.element == 2);
}

}  // namespace pricing_test
