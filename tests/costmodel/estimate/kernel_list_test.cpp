// The kernels that a stage lists are those of its price, and all of them.
#include "costmodel/estimate/kernel_list.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "costmodel/estimate/evaluator.hpp"
#include "tests/costmodel/support/scenarios.hpp"

namespace kernel_list_test {

using namespace costmodel;

namespace {

const std::vector<std::string> scenarios_read{
    "model: {base: llama-3-8b, layers: 4}\n"
    "cluster: {base: dgx-h100, devices: 1}\n"
    "training: {global_batch: 4, sequence: 8192, precision: bf16, stack: torchtitan}\n"
    "plan: {micro_batch: 1, zero: 3, recompute: full}\n",
    "model: {base: mixtral-8x7b, layers: 2}\n"
    "cluster: {base: dgx-h100, devices: 1}\n"
    "training: {global_batch: 2, sequence: 4096, precision: bf16, stack: torchtitan}\n"
    "plan: {micro_batch: 2, zero: 3}\n",
    "model: {base: llama-3-8b, layers: 4}\n"
    "cluster: {base: dgx-h100, devices: 1}\n"
    "training: {global_batch: 1, sequence: 4096, precision: bf16, stack: peft, "
    "fine_tuning: {method: lora, rank: 16}}\n"
    "plan: {micro_batch: 1}\n",
    "model: gpt2-medium\n"
    "cluster: {base: dgx-h100, devices: 1}\n"
    "training: {global_batch: 8, sequence: 1024, precision: bf16, stack: megatron-core-2025}\n"
    "plan: {micro_batch: 4}\n",
};

struct Priced {
  Scenario scenario;
  ParallelPlan plan;
  Evaluator evaluator;
};

// With launches that take so long.
Priced priced(const std::string& yaml, double launch) {
  Scenario s = scenarios::read(yaml);
  s.cluster.device.kernel_launch = Seconds(launch);
  s.training.stack.host.kernel_launch = Seconds(launch);
  s.cluster.device.host_call = Seconds(launch);
  return {s, resolve_plan(s), Evaluator(s.model, s.cluster, s.training)};
}

Seconds sum_of(const StageKernels& list, const std::vector<std::string_view>& passes) {
  Seconds sum;
  for (const ListedKernels& row : list.kernels)
    if (std::ranges::find(passes, row.passes) != passes.end()) sum += row.sum.time;
  return sum;
}

bool same(Seconds a, Seconds b) { return fixtures::relative_error(a.value, b.value) < 1e-9; }

}  // namespace

TEST_CASE("where launches cost nothing, a stage's kernels add up to its passes and its optimizer") {
  for (const std::string& yaml : scenarios_read) {
    CAPTURE(yaml);
    Priced p = priced(yaml, 0);
    const PlanCost& cost = p.evaluator.cost(p.plan);
    const StageRow& row = cost.stages[0];
    const StageKernels list = stage_kernels(cost, 0, p.plan, p.evaluator);
    CHECK(same(sum_of(list, {"forward"}), row.forward.compute));
    CHECK(same(sum_of(list, {"backward"}), row.backward.compute));
    if (row.recompute.compute.value > 0)
      CHECK(same(sum_of(list, {"recomputed"}), row.recompute.compute));
    if (!kernel_set(p.scenario.training).empty())
      CHECK(same(sum_of(list, {"iteration"}), cost.ranks[0].after.optimizer));
    for (const PassPace& pass : list.passes) CHECK_FALSE(pass.host_bound());
  }
}

TEST_CASE(
    "kinds add up to the kernels of an iteration, and copies are taken from their operators") {
  Priced p = priced(scenarios_read.front(), 0);
  const PlanCost& cost = p.evaluator.cost(p.plan);
  const StageKernels list = stage_kernels(cost, 0, p.plan, p.evaluator);
  const auto kinds = list.by_kind(cost.micro_batches);
  const Seconds all = std::accumulate(kinds.begin(), kinds.end(), Seconds(0));
  const Seconds each = sum_of(list, {"forward", "backward", "recomputed"});
  CHECK(same(all, each * 4 + sum_of(list, {"iteration"})));
  for (const Seconds kind : kinds) CHECK(kind.value > 0);
  Seconds of_shards;
  for (const ListedKernels& row : list.kernels)
    if (row.name == "shards") of_shards += row.sum.time * 4;
  CHECK(kinds[static_cast<std::size_t>(KernelKind::copies)] > of_shards);  // casts of the logits
}

TEST_CASE("where launches are slow, the host sets the pace of every pass, by their number") {
  Priced p = priced(scenarios_read.front(), 0.1);
  const PlanCost& cost = p.evaluator.cost(p.plan);
  const StageKernels list = stage_kernels(cost, 0, p.plan, p.evaluator);
  int launches = 0;
  for (const PassPace& pass : list.passes) {
    CAPTURE(pass.name);
    CHECK(pass.host_bound());
    CHECK(pass.host.value == doctest::Approx(0.1 * pass.launches));
    launches += pass.launches * pass.layers;
  }
  int listed = 0;
  for (const ListedKernels& row : list.kernels) {
    if (row.passes == "iteration") continue;
    listed += row.sum.kernels;
    CHECK((row.bound == KernelBound::launch || row.sum.kernels == 0));
  }
  CHECK(launches == listed);
}

}  // namespace kernel_list_test
