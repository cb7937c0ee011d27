// When a layer's tensors exist.
#include "costmodel/operators/lifetimes.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "costmodel/estimate/plan_inputs.hpp"
#include "tests/costmodel/support/scenarios.hpp"

namespace lifetimes_test {

using namespace costmodel;

namespace {

OpList layer_of(LayerKind kind, const std::string& model, const std::string& stack,
                int sequence = 2048) {
  const Scenario s =
      scenarios::read("model: " + model +
                      "\ncluster: {base: dgx-h100, devices: 1, devices_per_node: 1}\n"
                      "training: {global_batch: 1, sequence: " +
                      std::to_string(sequence) + ", stack: " + stack + "}\n");
  return build_layer(kind, s.model, context_of({}, {s.model, s.cluster, s.training}));
}

using Left = std::map<std::pair<TensorEvent::What, int>, Bytes>;

void play(const std::vector<TensorEvent>& events, Left& left, Bytes& now, Bytes& most) {
  for (const TensorEvent& event : events) {
    if (event.what == TensorEvent::What::weight_gradient) continue;
    left[{event.what, event.id}] += event.bytes;
    now += event.bytes;
    most = max(most, now);
  }
}

}  // namespace

TEST_CASE("whatever a layer allocates it frees, but for what its neighbours pass on") {
  for (const char* stack : {"torchtitan", "peft", "megatron-core-2025"}) {
    for (const char* model : {"llama-3.2-1b", "gpt-tiny"}) {
      const OpList list = layer_of(LayerKind::block, model, stack, 128);
      CAPTURE(stack);
      CAPTURE(model);
      const LayerLifetimes life = lifetimes(list, Recomputed::nothing);
      Left left;
      Bytes now, most;
      play(life.forward, left, now, most);
      const Footprint all = footprint(list, Recomputed::nothing);
      const Bytes input = list.tensors[static_cast<std::size_t>(list.input)].bytes(),
                  output = list.tensors[static_cast<std::size_t>(list.output)].bytes();
      CHECK(now == all.kept + output - input);
      play(life.backward, left, now, most);
      using What = TensorEvent::What;
      for (const auto& [tensor, bytes] : left) {
        if (tensor == std::pair(What::tensor, list.input))
          CHECK(bytes == Bytes(0) - input);
        else if (tensor == std::pair(What::tensor, list.output))
          CHECK(bytes == output);
        else if (tensor == std::pair(What::gradient, list.input))
          CHECK(bytes == input);
        else if (tensor == std::pair(What::gradient, list.output))
          CHECK(bytes == Bytes(0) - output);
        else
          CHECK(bytes == Bytes(0));
      }
    }
  }
}

TEST_CASE("the largest of the allocations is the footprint's") {
  for (const LayerKind kind : {LayerKind::block, LayerKind::head}) {
    const OpList list = layer_of(kind, "llama-3.2-1b", "torchtitan");
    const Footprint own = footprint(list, Recomputed::nothing);
    Left left;
    // The output's gradient comes from the layer after.
    Bytes now = own.kept + list.tensors[static_cast<std::size_t>(list.output)].bytes(), most = now;
    play(lifetimes(list, Recomputed::nothing).backward, left, now, most);
    CHECK(most == own.kept + own.backward_transient);
  }
}

TEST_CASE(
    "PyTorch's kernels keep both factors of a gated activation and repeated keys and values") {
  // Llama 3.2 1B with 2,048 tokens: input, two norms, residual, q and attention of 8 MiB, keys and
  // values repeated to 32 heads of 8 MiB each; gate, its activation, up and their product of 32.
  const auto kept = [](const char* stack) {
    Bytes bytes;
    const OpList list = layer_of(LayerKind::block, "llama-3.2-1b", stack);
    for (const TensorId id : kept_tensors(list, Recomputed::nothing)) {
      const TensorInfo& tensor = list.tensors[static_cast<std::size_t>(id)];
      if (tensor.role != TensorRole::statistics) bytes += tensor.bytes();
    }
    return bytes.value / (1 << 20);
  };
  CHECK(kept("torchtitan") == 8 * 8 + 4 * 32);
  CHECK(kept("{base: torchtitan, kernels: {eager: pytorch-compiled}}") == 8 * 8 + 3 * 32);
  // Under autocast with fp32 weights each norm keeps its input and result in fp32 (16 MiB each),
  // and each of the products after it a copy in 16 bits; attention takes keys as they are (2).
  CHECK(kept("peft") == 2 * (16 + 16) + (3 + 2) * 8 + 8 + 2 + 2 + 8 + 4 * 32);
}

TEST_CASE("torchtitan's selective checkpoints keep what experts are sent and send back") {
  // 4,096 tokens to 6 experts each, of width 2,048.
  const auto kept = [](int ep) {
    const auto s = scenarios::read(
        "model: deepseek-v2-lite\ncluster: {base: dgx-h100, devices: 8}\ntraining: {sequence: "
        "4096, global_batch: 8, stack: torchtitan}\nplan: {ep: " +
        std::to_string(ep) + "}\n");
    const ParallelPlan plan = resolve_plan(s);
    const Workload on{s.model, s.cluster, s.training};
    Bytes sum;
    const LayerKind kind = Block{Mixer::attention, FeedForward::experts};
    for (const auto& [id, bytes] :
         alternate_tensors(build_layer(kind, s.model, context_of(plan, on))))
      sum += bytes;
    return sum.value;
  };
  CHECK(kept(8) - kept(1) == 2 * 4096.0 * 6 * 2048 * 2);
}

}  // namespace lifetimes_test
