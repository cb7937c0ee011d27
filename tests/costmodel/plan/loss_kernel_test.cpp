// The kernels of the loss: what a scenario says of them, and what tensor ranks send for each.
#include "costmodel/plan/loss_kernel.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "costmodel/base/error.hpp"
#include "costmodel/operators/transformer.hpp"
#include "tests/costmodel/support/scenarios.hpp"

namespace loss_kernel_test {

using namespace costmodel;

namespace {

LossKernel loss_of(const std::string& training) {
  const Scenario s = scenarios::read(
      "model: gpt-tiny\ncluster: {base: dgx-h100, devices: 8}\n"
      "training: {global_batch: 16, sequence: 128, " +
      training + "}\nplan: {dp: 8}\n");
  return s.training.stack.kernels.loss;
}

// Of the loss, as the device's whole messages: of b·s tokens, cut over tp ranks.
std::vector<Collective> collectives_of(LossKernel kernel, int tp) {
  LayerContext context = fixtures::layer_context(tp, false, 2, 128);
  context.loss = kernel;
  std::vector<Collective> found;
  const ModelSpec model = scenarios::read(scenarios::tiny + "cluster: {base: laptop-cpu}\n").model;
  const OpList list = build_layer(LayerKind::head, model, context);
  bool behind = false;
  for (const Node& node : list.nodes) {
    if (const auto* sent = std::get_if<Collective>(&node.op); behind && sent != nullptr)
      found.push_back(*sent);
    behind = behind || std::holds_alternative<CrossEntropy>(node.op);
  }
  return found;
}

}  // namespace

TEST_CASE("a scenario's loss is its stack's, or one that it names") {
  CHECK(loss_of("stack: megatron-core-2026") == LossKernel::native);
  CHECK(loss_of("stack: megatron-core-2025") == LossKernel::native);
  CHECK(loss_of("stack: megatron-bridge") == LossKernel::te);
  CHECK(loss_of("stack: megatron-core-2024") == LossKernel::unfused);
  for (std::size_t kernel = 0; kernel < loss_kernel_names.size(); ++kernel) {
    const std::string named = "loss: " + std::string(loss_kernel_names[kernel]);
    CHECK(loss_of("stack: megatron-core-2026, " + named) == static_cast<LossKernel>(kernel));
  }
  CHECK_THROWS_AS(loss_of("loss: fused"), ConfigError);
  CHECK_THROWS_AS(loss_of("loss: {chunks: 8}"), ConfigError);
}

// Of fp32 numbers a token: its maximum, its sum and the target's logit.
TEST_CASE("tensor ranks reduce each number, two of them at once, or gather all three") {
  const double number = 2 * 128 * 4;
  const auto bytes = [](const std::vector<Collective>& sent, CollectiveKind kind) {
    std::vector<double> each;
    for (const Collective& one : sent) {
      CHECK(one.forward == kind);
      CHECK(one.backward == CollectiveKind::none);
      each.push_back(one.bytes.value);
    }
    return each;
  };
  using Each = std::vector<double>;
  constexpr auto reduced = CollectiveKind::all_reduce;
  for (const LossKernel kernel : {LossKernel::unfused, LossKernel::flash})
    CHECK(bytes(collectives_of(kernel, 4), reduced) == Each{number, number, number});
  CHECK(bytes(collectives_of(LossKernel::native, 4), reduced) == Each{number, 2 * number});
  CHECK(bytes(collectives_of(LossKernel::te, 4), CollectiveKind::all_gather) ==
        Each{4 * 3 * number});
  for (std::size_t kernel = 0; kernel < loss_kernel_names.size(); ++kernel)
    CHECK(collectives_of(static_cast<LossKernel>(kernel), 1).empty());
}

}  // namespace loss_kernel_test
