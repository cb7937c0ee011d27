// What is named when nothing fits, each of it found by a search.
#include "planner/diagnosis/remedies.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "costmodel/estimate/evaluator.hpp"
#include "tests/costmodel/support/scenarios.hpp"

namespace remedies_test {

using costmodel::Evaluator;
using costmodel::Scenario;
using fixtures::contains;
using planner::Diagnosis;
using scenarios::read;

namespace {

Diagnosis diagnosed(const Scenario& s, const planner::OtherStacks& stacks = {}) {
  Evaluator evaluator(s.model, s.cluster, s.training);
  const auto failed = planner::search(s, evaluator);
  REQUIRE(failed.plans.empty());
  return planner::diagnose(s, failed, stacks);
}

// The place of the remedy that begins with `start`; -1 without one.
int place_of(const Diagnosis& d, const std::string& start) {
  const auto at = std::find_if(d.remedies.begin(), d.remedies.end(),
                               [&](const std::string& line) { return line.rfind(start, 0) == 0; });
  return at == d.remedies.end() ? -1 : static_cast<int>(at - d.remedies.begin());
}

// Nothing of it fits, but nearly.
std::string nearly(const std::string& stack) {
  return "model: llama-3-8b\ncluster: {base: pcie-8x-rtx-4090}\n"
         "training: {global_batch: 64, sequence: 8192, stack: " +
         stack + ", loss: flash}\nplan: {recompute: none}\n";
}

}  // namespace

TEST_CASE("when nothing fits the diagnosis names what would") {
  const Scenario s = read(
      "model: gpt3-175b\ncluster: {base: selene, devices: 16}\n"
      "training: {global_batch: 64, sequence: 2048, stack: megatron-core-2026}\n"
      "plan: {recompute: none}\n");
  Evaluator evaluator(s.model, s.cluster, s.training);
  const auto failed = planner::search(s, evaluator);
  REQUIRE(failed.plans.empty());
  REQUIRE(failed.leanest.has_value());
  CHECK(failed.leanest_peak > s.cluster.device.memory);
  const auto diagnosis = planner::diagnose(s, failed);
  CHECK(diagnosis.obstacles.size() >= 3);
  REQUIRE_FALSE(diagnosis.remedies.empty());
  bool more_devices = false;
  for (const auto& line : diagnosis.remedies)
    more_devices |= line.find("devices instead of 16") != std::string::npos;
  CHECK(more_devices);

  const auto stopped = planner::diagnose(s, failed, {}, [] { return true; });
  CHECK(stopped.obstacles == diagnosis.obstacles);
  CHECK(stopped.remedies.empty());
  CHECK(stopped.tried == std::vector<std::string>{"not all, for it was interrupted"});
}

TEST_CASE("nearer than twice the devices, and what changes least first") {
  const planner::OtherStacks stacks{{"megatron-bridge", "no-such-stack"},
                                    [](const std::string& n) { return read(nearly(n)); }};
  const Diagnosis d = diagnosed(read(nearly("megatron-core-2026")), stacks);
  const std::vector<std::string> order{"all of the memory: search.memory_margin=0: ",
                                       "free plan.recompute: ",
                                       "plan.recompute={modules: [",
                                       "moments of two bytes: training.moment_precision=bf16: ",
                                       "another stack: training.stack=megatron-bridge: ",
                                       "moments of one byte, by blocks (bitsandbytes): "
                                       "training.optimizer=adam-8bit: ",
                                       "one moment of matrices instead of two: "
                                       "training.optimizer=muon: ",
                                       "sums of rows and columns instead of moments: "
                                       "training.optimizer=adafactor: ",
                                       "one moment instead of two: training.optimizer=sgd: ",
                                       "16 devices instead of 8 (more than the 8 whose links are "
                                       "described): ",
                                       "sequence 4096 instead of 8192: "};
  for (std::size_t i = 0; i < order.size(); ++i) {
    CAPTURE(order[i]);
    CHECK(place_of(d, order[i]) == static_cast<int>(i));
  }
}

TEST_CASE("the fewest nodes, not the next power of two, and fewer do not hold it") {
  const auto on = [](int devices) {
    return read("model: gpt3-175b\ncluster: {base: selene, devices: " + std::to_string(devices) +
                "}\ntraining: {global_batch: 64, sequence: 2048, stack: megatron-2021}\n");
  };
  CHECK(place_of(diagnosed(on(16)), "48 devices instead of 16: ") == 0);
  for (const int fewer : {24, 40}) {
    const Scenario s = on(fewer);
    Evaluator evaluator(s.model, s.cluster, s.training);
    CHECK(planner::search(s, evaluator).plans.empty());
  }
}

TEST_CASE("parts of the first node are devices too") {
  const Scenario s = read(
      "model: llama-3-8b\ncluster: {base: dgx-h100, devices: 1}\n"
      "training: {global_batch: 60, sequence: 2048, stack: megatron-core-2026}\n");
  CHECK(place_of(diagnosed(s), "2 devices instead of 1: ") >= 0);
}

TEST_CASE("a fine-tuning that nothing fits is told what LoRA and QLoRA need") {
  const auto tuned = [](const std::string& method, const std::string& stack) {
    return read(
        "model: llama-3-8b\ncluster: {base: pcie-8x-rtx-4090, devices: 1}\n"
        "training: {global_batch: 8, sequence: 1024, stack: " +
        stack + (method.empty() ? "" : ", fine_tuning: {method: " + method + "}") + "}\n");
  };
  const planner::OtherStacks stacks{{}, {}, tuned};
  const Diagnosis d = diagnosed(tuned("full", "torchtitan"), stacks);
  const int lora =
      place_of(d,
               "adapters beside a frozen base of 16 bits: training.fine_tuning.method=lora and "
               "training.stack=peft: ");
  CHECK(lora >= 0);
  CHECK(place_of(d,
                 "adapters beside a frozen base of 4 bits: training.fine_tuning.method=qlora "
                 "and training.stack=peft: ") > lora);
  CHECK(place_of(diagnosed(tuned("full", "peft"), stacks),
                 "adapters beside a frozen base of 16 bits: training.fine_tuning.method=lora: ") >=
        0);
  // What does not say that it is a pretraining may be a fine-tuning.
  const planner::OtherStacks with_command{{}, {}, tuned, "shardplan plan a.yaml"};
  const Diagnosis unsaid = diagnosed(tuned("", "torchtitan"), with_command);
  const int adapted = place_of(unsaid,
                               "if it is a fine-tuning, adapters beside a frozen base of 16 bits: "
                               "training.fine_tuning.method=lora and training.stack=peft: ");
  REQUIRE(adapted >= 0);
  CHECK(unsaid.remedies[static_cast<std::size_t>(adapted)].ends_with(
      "; shardplan plan a.yaml --set training.fine_tuning.method=lora --set training.stack=peft"));
}

}  // namespace remedies_test
