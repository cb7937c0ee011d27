// How a scenario is named, and what it asks for that its stack has in no plan.
#include "costmodel/scenario/scenario.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "tests/costmodel/support/scenarios.hpp"

namespace scenario_test {

using fixtures::contains;

namespace {

std::string refused(const std::string& stack, const std::string& plan,
                    const std::string& model = "gpt2-medium") {
  return fixtures::config_error([&] {
    require_offered(scenarios::read("model: " + model +
                                    "\ncluster: {base: dgx-a100, devices: 8}\n"
                                    "training: {global_batch: 16, sequence: 1024, precision: fp16, "
                                    "stack: " +
                                    stack + "}\nplan: " + plan + "\n"));
  });
}

}  // namespace

TEST_CASE("what the stack offers in no plan is refused at its key before a search") {
  CHECK(refused("megatron-2021", "{sequence_parallel: true}") ==
        "test.yaml:4:27: stack megatron-2021 has no sequence parallelism; "
        "choose another "
        "training.stack (see `shardplan list stacks`)");
  CHECK(contains(refused("megatron-2021", "{tp: 2, sequence_parallel: true}"), "test.yaml:4:34"));
  CHECK(contains(refused("megatron-2021", "{zero: 1}"), "offers ZeRO up to stage 0"));
  CHECK(contains(refused("megatron-2021", "{cp: 2}"), "no context parallelism"));
  CHECK(contains(refused("megatron-2021", "{recompute: selective}"), "no selective"));
  CHECK(contains(refused("megatron-2021", "{schedule: zero-bubble-h1}"), "no zero-bubble"));
}

TEST_CASE("recomputation by modules is of stacks that have it, and of modules of the model") {
  const auto modules = [](const std::string& list) {
    return "{recompute: {modules: [" + list + "]}}";
  };
  CHECK(contains(refused("torchtitan", modules("mlp")), "has no recomputation by modules"));
  CHECK(refused("torchtitan", modules("core_attn")).empty());
  CHECK(refused("megatron-core-2026", modules("mlp")).empty());
  const auto fault = [&](const std::string& model, const std::string& list) {
    return fixtures::config_error([&] {
      resolve_plan(scenarios::read("model: " + model +
                                   "\ncluster: {base: dgx-a100, devices: 8}\n"
                                   "training: {global_batch: 16, sequence: 1024}\nplan: " +
                                   modules(list) + "\n"));
    });
  };
  CHECK(contains(fault("llama-3-8b", "moe_act"), "the model has no experts"));
  CHECK(contains(fault("mixtral-8x7b", "mla_up_proj"), "the model has no latent attention"));
  CHECK(fault("mixtral-8x7b", "moe_act").empty());
}

TEST_CASE("what is left open, and what tp 1 switches off, is refused of no stack") {
  for (const auto& stack : costmodel::config_names(fixtures::configs(), "stacks")) {
    CAPTURE(stack);
    CHECK(refused(stack, "{}") == "");
    CHECK(refused(stack, "{tp: 1, sequence_parallel: true}") == "");
    CHECK(refused(stack, "{sequence_parallel: auto, zero: auto, recompute: full, cp: 1}") == "");
  }
}

// InternLM's configs/7B_sft.py of 2023: zero1=8. A plan over all ranks is written with its key.
TEST_CASE(
    "where the stack's recipes shard within a node, a plan without dp_replicate does so too") {
  const auto read = [](const std::string& stack, const std::string& plan) {
    return scenarios::read(
        "model: llama-3-8b\ncluster: {base: dgx-a100, devices: 64}\n"
        "training: {global_batch: 64, sequence: 1024, precision: bf16, stack: " +
        stack + "}\nplan: " + plan + "\n");
  };
  const auto groups = [&](const char* stack, const char* plan) {
    return resolve_plan(read(stack, plan)).dp_replicate;
  };
  CHECK(groups("internevo", "{zero: 1}") == 8);
  CHECK(groups("internevo", "{tp: 2, zero: 1}") == 8);  // of 32 ranks, four to a node
  CHECK(groups("internevo", "{tp: 8, zero: 1}") == 1);  // a node holds one rank
  CHECK(groups("internevo", "{zero: 0}") == 1);
  CHECK(groups("internevo", "{zero: 1, dp_replicate: 1}") == 1);
  CHECK(groups("torchtitan", "{zero: 3}") == 1);

  const auto all = read("internevo", "{zero: 1, dp_replicate: 1}");
  const costmodel::Value map = plan_map(resolve_plan(all), all);
  const costmodel::Value* written = map.find("dp_replicate");
  REQUIRE(written != nullptr);
  CHECK(written->text == "1");
  const auto other = read("torchtitan", "{zero: 3}");
  CHECK(plan_map(resolve_plan(other), other).find("dp_replicate") == nullptr);
}

TEST_CASE("what was assumed is of training or of the cluster, and nothing else") {
  const auto fault = [](const std::string& assumed) {
    return fixtures::config_error([&] {
      scenarios::read(scenarios::tiny + "cluster: laptop-cpu\nassumed: " + assumed + "\n");
    });
  };
  CHECK(fault("{training: [a line], cluster: [another]}").empty());
  CHECK(contains(fault("{trainingg: [a line]}"),
                 "test.yaml:4:11: assumed has no key 'trainingg'; did you mean 'training'?"));
}

TEST_CASE("shared experts that a model lacks hide no exchange, and that is listed") {
  const auto read = [](const char* model) {
    return scenarios::read(
        fmt::format("model: {}\ncluster: {{base: dgx-a100, devices: 8}}\ntraining: {{global_batch: "
                    "16, sequence: 1024}}\nplan: {{ep: 8, shared_expert_overlap: true}}\n",
                    model));
  };
  const Scenario without = read("mixtral-8x7b"), with = read("deepseek-v2-lite");
  CHECK_FALSE(expert_recipe(without).shared_overlap);
  CHECK(std::ranges::count(
            without.training.assumed,
            "plan.shared_expert_overlap left out: the model has no shared experts") == 1);
  CHECK(expert_recipe(with).shared_overlap);
}

TEST_CASE("what a plan has of experts is left out of a model without any, and listed") {
  const Scenario s = scenarios::read(
      "model: gpt2-medium\ncluster: {base: dgx-a100, devices: 8}\n"
      "training: {global_batch: 16, sequence: 1024}\nplan: {dispatcher: deepep}\n");
  CHECK(std::ranges::count(s.training.assumed,
                           "plan.dispatcher left out: the model has no experts") == 1);
  CHECK(plan_map(resolve_plan(s), s).find("dispatcher") == nullptr);
}

TEST_CASE("every scenario of ours is found by its name, and by its file's") {
  const auto path = fixtures::configs();
  const auto names = costmodel::config_names(path, "scenarios");
  REQUIRE(std::count(names.begin(), names.end(), "llama-3.2-1b-a100-h100") == 1);
  for (const auto& name : names) {
    const auto file = costmodel::scenario_file(name, path);
    CHECK(contains(file, "/scenarios/" + name + ".yaml"));
    CHECK(costmodel::scenario_file(name + ".yaml", path) == file);
  }
  CHECK(contains(fixtures::config_error([&] { costmodel::scenario_file("llama-3.2", path); }),
                 "no scenario of that name"));
}

}  // namespace scenario_test
