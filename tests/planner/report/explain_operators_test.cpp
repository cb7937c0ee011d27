// The rows of `explain` are the prediction's own sums: operators make layers, layers make stages.
#include "planner/report/explain_operators.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "costmodel/estimate/evaluator.hpp"
#include "costmodel/estimate/layer_mix.hpp"
#include "tests/costmodel/support/scenarios.hpp"

namespace explain_operators_test {

using costmodel::Evaluator;
using costmodel::LayerKind;
using costmodel::ParallelPlan;
using costmodel::Scenario;
using costmodel::Seconds;
using planner::operator_times;
using planner::OperatorTime;
using planner::stage_parts;
using planner::StagePart;

namespace {

const std::string h100s = "cluster: {base: dgx-h100, devices: 8}\n";

std::string llama(const std::string& stack) {
  return "model: llama-3-8b\n" + h100s +
         "training: {global_batch: 64, sequence: 8192, precision: bf16, stack: " + stack + "}\n";
}

// Tensor, pipeline, expert and fully sharded data parallelism; recomputation of a part of the
// layers; input and weight gradients apart; ranks that share a machine; stages that differ.
const std::vector<std::string> plans{
    llama("megatron-core-2025") + "plan: {tp: 2, sequence_parallel: true, zero: 1}\n",
    llama("megatron-core-2026") +
        "plan: {tp: 2, pp: 4, recompute: {granularity: full, layers: 2}}\n",
    llama("torchtitan") + "plan: {tp: 2, pp: 2, recompute: selective, zero: 3}\n",
    llama("torchtitan") + "plan: {tp: 1, recompute: full, zero: 3}\n",
    llama("zero-bubble-fork") + "plan: {pp: 4, tp: 2, schedule: zero-bubble-h1}\n",
    "model: mixtral-8x7b\n" + h100s +
        "training: {global_batch: 64, sequence: 4096, precision: bf16, stack: megatron-core-2026}\n"
        "plan: {tp: 2, pp: 2, ep: 2, sequence_parallel: true}\n",
    "model: gpt3-175b\ncluster: {base: selene, devices: 128}\n"
    "training: {global_batch: 64, sequence: 2048, precision: fp16, stack: megatron-2021}\n"
    "plan: {tp: 8, pp: 16, recompute: full}\n",
    scenarios::tiny + "cluster: {base: laptop-cpu, devices: 4}\nplan: {pp: 2, micro_batch: 2}\n",
};

template <class Part>
Seconds sum_of(const std::vector<Part>& parts, Seconds Part::*pass) {
  Seconds sum;
  for (const Part& part : parts) sum += part.*pass;
  return sum;
}

bool waits(const OperatorTime& row) { return row.name.starts_with("waiting"); }

bool same(Seconds a, Seconds b) { return fixtures::relative_error(a.value, b.value) < 1e-9; }

}  // namespace

TEST_CASE("the operators of a layer add up to its price") {
  for (const std::string& yaml : plans) {
    CAPTURE(yaml);
    const Scenario s = scenarios::read(yaml);
    const ParallelPlan plan = resolve_plan(s);
    Evaluator evaluator(s.model, s.cluster, s.training);
    for (const LayerKind kind : planner::layer_kinds(s.model)) {
      const auto rows = operator_times(kind, plan, evaluator);
      const auto& cost =
          evaluator.layer(kind, evaluator.as_run(plan), costmodel::Recomputed::nothing);
      const bool split = splits_backward(plan.schedule);
      const Seconds backward =
          split ? cost.input_gradient.time() + cost.weight_gradient.time() : cost.backward.time();
      CHECK(same(sum_of(rows, &OperatorTime::forward), cost.forward.time()));
      CHECK(same(sum_of(rows, &OperatorTime::backward), backward));
      // Long kernels: none waits for its launch, so nothing but operators is in the sum.
      if (kind == LayerKind::block && s.training.sequence > 1024)
        CHECK(std::none_of(rows.begin(), rows.end(), waits));
    }
  }
}

TEST_CASE("the layers of a stage and what it has besides add up to its forward and backward") {
  for (const std::string& yaml : plans) {
    CAPTURE(yaml);
    const Scenario s = scenarios::read(yaml);
    const ParallelPlan plan = resolve_plan(s);
    Evaluator evaluator(s.model, s.cluster, s.training);
    const auto e = evaluator.estimate(plan);
    const auto& cost = evaluator.cost(plan);
    for (std::size_t k = 0; k < e.stage_forward.size(); ++k) {
      const auto parts = stage_parts(cost, k, plan, evaluator);
      CHECK(same(sum_of(parts, &StagePart::forward), e.stage_forward[k]));
      CHECK(same(sum_of(parts, &StagePart::backward), e.stage_backward[k]));
    }
  }
}

TEST_CASE("without a pipeline, operators alone make up the stage") {
  const Scenario s = scenarios::read(plans.front());
  const ParallelPlan plan = resolve_plan(s);
  Evaluator evaluator(s.model, s.cluster, s.training);
  const auto e = evaluator.estimate(plan);
  REQUIRE(s.training.stack.kernels.elementwise_factor != 1);
  Seconds forward = s.training.stack.host.micro_batch / 2, backward = forward;
  for (const LayerKind kind : planner::layer_kinds(s.model)) {
    const auto rows = operator_times(kind, plan, evaluator);
    const int layers = kind == LayerKind::block ? static_cast<int>(s.model.layers) : 1;
    forward += layers * sum_of(rows, &OperatorTime::forward);
    backward += layers * sum_of(rows, &OperatorTime::backward);
  }
  CHECK(same(forward, e.stage_forward.front()));
  CHECK(same(backward, e.stage_backward.front()));
}

TEST_CASE("the stack's factor of element-wise kernels is in their rows and in no product's") {
  Scenario s = scenarios::read(plans.front());
  const ParallelPlan plan = resolve_plan(s);
  const auto rows_at = [&](double factor) {
    s.training.stack.kernels.elementwise_factor = factor;
    Evaluator evaluator(s.model, s.cluster, s.training);
    return operator_times(LayerKind::block, plan, evaluator);
  };
  const auto once = rows_at(1), thrice = rows_at(3);
  REQUIRE(once.size() == thrice.size());
  int products = 0;
  for (std::size_t i = 0; i < once.size(); ++i) {
    CAPTURE(once[i].name);
    const double ratio = thrice[i].forward / once[i].forward;
    const bool communicates = once[i].name.find(": ") != std::string::npos;
    products += once[i].flops.value > 0 ? 1 : 0;
    CHECK(ratio == doctest::Approx(once[i].flops.value > 0 || communicates ? 1.0 : 3.0));
  }
  CHECK(products == 5);
}

TEST_CASE("kernels come the longest first, by what bounds them, and the host where it is slower") {
  Scenario s = scenarios::read(llama("torchtitan") + "plan: {tp: 1, recompute: full, zero: 3}\n");
  const ParallelPlan plan = resolve_plan(s);
  const auto tables = [&](Seconds launch) {
    s.training.stack.host.kernel_launch = launch;
    Evaluator evaluator(s.model, s.cluster, s.training);
    const auto& cost = evaluator.cost(plan);
    const auto stage = costmodel::stage_kernels(cost, 0, plan, evaluator);
    return std::pair{planner::kernel_table(stage), planner::pace_table(stage)};
  };
  const auto bounds_in = [](const planner::Table& table) {
    std::set<std::string> words;
    for (const auto& row : table.rows) words.insert(row.back());
    return words;
  };
  const auto [kernels, pace] = tables(Seconds(1e-6));
  CHECK(bounds_in(kernels).contains("arithmetic"));
  CHECK(bounds_in(kernels).contains("memory"));
  CHECK_FALSE(bounds_in(kernels).contains("launch"));
  CHECK(bounds_in(pace) == std::set<std::string>{"device"});
  CHECK(kernels.rows.front().back() == "arithmetic");
  const auto [slow_kernels, slow_pace] = tables(Seconds(1e-2));
  CHECK(bounds_in(slow_pace) == std::set<std::string>{"host"});
  CHECK(bounds_in(slow_kernels).contains("launch"));
}

TEST_CASE("stages on devices of their own are told by their own prices") {
  const Scenario s = scenarios::read(
      "model: {base: gpt2-medium, layers: 8}\n" + scenarios::mixed(2, 2) +
      "training: {global_batch: 16, sequence: 1024, precision: fp16, stack: megatron-2021}\n"
      "plan: {stages: [{dp: 2, layers: 6, group: h100, recompute: full}, {tp: 2, dp: 1, layers: 2, "
      "group: a100}]}\n");
  Evaluator evaluator(s.model, s.cluster, s.training);
  const auto e = evaluator.estimate(resolve_plan(s));
  const auto& cost = evaluator.cost(e.plan);
  REQUIRE(e.meshes.size() == 2);
  for (std::size_t k = 0; k < 2; ++k) {
    Evaluator own(s.model, s.cluster.groups[k], s.training);
    const auto parts = stage_parts(cost, k, e.meshes[k].plan, own);
    CHECK(same(sum_of(parts, &StagePart::forward), e.stage_forward[k]));
    CHECK(same(sum_of(parts, &StagePart::backward), e.stage_backward[k]));
  }
}

}  // namespace explain_operators_test
