// What is trained and how, changed so that it takes fewer bytes.
#include "planner/diagnosis/training_changes.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "costmodel/base/error.hpp"
#include "tests/costmodel/support/scenarios.hpp"

namespace training_changes_test {

using costmodel::Scenario;
using planner::Attempts;
using scenarios::read;

namespace {

// Nothing of it fits, but nearly.
Scenario nearly(const std::string& stack) {
  return read(
      "model: llama-3-8b\ncluster: {base: pcie-8x-rtx-4090}\n"
      "training: {global_batch: 64, sequence: 8192, stack: " +
      stack + ", loss: flash}\nplan: {recompute: none}\n");
}

planner::Diagnosis changed(const Scenario& s, const planner::OtherStacks& stacks) {
  const std::function<bool()> never;
  Attempts attempts{{}, never, stacks, s.plan};
  planner::change_training(s, attempts);
  return attempts;
}

bool sets(const planner::Diagnosis& d, const std::string& setting) {
  return std::ranges::any_of(d.remedies, [&](const planner::Remedy& r) {
    return std::ranges::find(r.settings, setting) != r.settings.end();
  });
}

}  // namespace

TEST_CASE("moments, optimizers, modules and stacks are each changed alone") {
  const planner::OtherStacks stacks{{"megatron-bridge"}, nearly};
  const auto d = changed(nearly("megatron-core-2026"), stacks);
  for (const char* const setting :
       {"training.moment_precision=bf16", "training.optimizer=adam-8bit",
        "training.optimizer=adafactor", "training.optimizer=sgd", "training.stack=megatron-bridge"})
    CHECK_MESSAGE(sets(d, setting), setting);
  for (const planner::Remedy& remedy : d.remedies) CHECK(remedy.settings.size() == 1);
  CHECK_FALSE(sets(d, "training.loss=flash"));  // it is that
  CHECK(std::ranges::find(d.tried, "a loss that keeps 16-bit logits") == d.tried.end());
}

TEST_CASE("a stack that has no words for what is fixed is no remedy") {
  const planner::OtherStacks stacks{{"none"}, [](const std::string&) -> Scenario {
                                      throw costmodel::ConfigError({}, "no such stack", "another");
                                    }};
  const auto d = changed(nearly("megatron-core-2026"), stacks);
  CHECK_FALSE(sets(d, "training.stack=none"));
  CHECK(std::ranges::find(d.tried, "other stacks") != d.tried.end());
}

}  // namespace training_changes_test
