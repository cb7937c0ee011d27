// torchtitan's flavors beside our models: each row has the sizes of the model that it names.
#include "planner/frameworks/torchtitan_flavors.hpp"

#include <doctest/doctest.h>

#include <string>

#include "tests/costmodel/support/scenarios.hpp"

namespace torchtitan_flavors_test {

namespace {

costmodel::ModelSpec model(const std::string& text) {
  return scenarios::read("model: " + text +
                         "\ncluster: {base: dgx-h100, devices: 8}\n"
                         "training: {global_batch: 8, sequence: 4096, precision: bf16, stack: "
                         "torchtitan}\n")
      .model;
}

}  // namespace

TEST_CASE("every flavor is found by the model that it names, and by its own name") {
  for (const auto& flavor : planner::torchtitan_flavors()) {
    CAPTURE(flavor.model);
    CHECK(planner::flavor_of(model(std::string(flavor.model))) == &flavor);
    CHECK(planner::flavor_named(flavor.name, flavor.flavor) == &flavor);
  }
  CHECK(planner::flavor_named("llama3", "671B") == nullptr);
}

TEST_CASE("another size, and another kind of model, has none") {
  CHECK(planner::flavor_of(model("{base: llama-3.1-8b, layers: 31}")) == nullptr);
  CHECK(planner::flavor_of(model("{base: llama-3.1-8b, qk_norm: true}")) == nullptr);
  CHECK(planner::flavor_of(model("{base: deepseek-v3, mtp_layers: 1}")) == nullptr);
  CHECK(planner::flavor_of(model("{base: gpt3-175b, max_positions: 4096}")) == nullptr);
  CHECK(planner::flavor_of(model("llama-3-8b")) == planner::flavor_named("llama3", "8B"));
}

}  // namespace torchtitan_flavors_test
