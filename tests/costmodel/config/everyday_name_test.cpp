#include "costmodel/config/everyday_name.hpp"

#include <doctest/doctest.h>

#include <map>

#include "tests/costmodel/support/fixtures.hpp"

namespace everyday_name_test {

using namespace costmodel;
using Names = std::vector<std::string>;

TEST_CASE("devices find the cluster that people mean") {
  const std::map<std::string, std::string> expected{{"h100", "dgx-h100"},
                                                    {"H100", "dgx-h100"},
                                                    {"rtx-4090", "pcie-8x-rtx-4090"},
                                                    {"4090", "pcie-8x-rtx-4090"},
                                                    {"NVIDIA GeForce RTX 4090", "pcie-8x-rtx-4090"},
                                                    {"a100", "dgx-a100"},
                                                    {"a100-40gb", "mosaic-a100-sxm4-40gb"},
                                                    {"A100 80GB", "dgx-a100"},
                                                    {"h800", "hgx-h800"},
                                                    {"l40s", "pcie-8x-l40s"},
                                                    {"gb200", "dgx-gb200"},
                                                    {"AMD Instinct MI300X", "mi300x-8x"},
                                                    {"h100-sxm5-80gb", "dgx-h100"},
                                                    {"selene", "selene"}};
  for (const auto& [word, cluster] : expected) {
    CAPTURE(word);
    CHECK(configs_called(fixtures::configs(), "clusters", word) == Names{cluster});
  }
  CHECK(configs_called(fixtures::configs(), "clusters", "h1000").empty());
  CHECK(configs_called(fixtures::configs(), "clusters", "").empty());
}

TEST_CASE("frameworks find a stack") {
  const std::map<std::string, std::string> expected{
      {"megatron", "megatron-core-2026"},     {"Megatron-LM", "megatron-core-2026"},
      {"megatron-bridge", "megatron-bridge"}, {"nemo", "nemo-2025"},
      {"torchtitan", "torchtitan"},           {"deepspeed", "deepspeed"},
      {"zero-offload", "deepspeed"},          {"trl", "peft"}};
  for (const auto& [word, stack] : expected) {
    CAPTURE(word);
    CHECK(configs_called(fixtures::configs(), "stacks", word) == Names{stack});
  }
}

TEST_CASE("no two clusters, and no two stacks, have a name in common") {
  for (const std::string kind : {"clusters", "stacks"}) {
    for (const auto& name : everyday_names(fixtures::configs(), kind)) {
      CAPTURE(name);
      CHECK(configs_called(fixtures::configs(), kind, name).size() == 1);
    }
  }
}

TEST_CASE("models by the names of repositories, by family and by size") {
  const std::map<std::string, Names> expected{
      {"llama-3-8b", {"llama-3-8b"}},
      {"Llama-3-8B", {"llama-3-8b"}},
      {"meta-llama/Meta-Llama-3-8B-Instruct", {"llama-3-8b"}},
      {"meta-llama/Llama-3.1-8B", {"llama-3.1-8b"}},
      {"meta-llama/Llama-2-7b-hf", {"llama-2-7b"}},
      {"mistralai/Mixtral-8x7B-v0.1", {"mixtral-8x7b"}},
      {"mistralai/Mixtral-8x7B-Instruct-v0.1", {"mixtral-8x7b"}},
      {"Qwen/Qwen3-14B", {"qwen3-14b"}},
      {"deepseek-ai/DeepSeek-V3-Base", {"deepseek-v3"}},
      {"llama_3_70b", {"llama-3-70b"}},
      {"8x22b", {"mixtral-8x22b"}},
      {"mixtral", {"mixtral-8x22b", "mixtral-8x7b"}},
      {"deepseek",
       {"deepseek-coder-1.3b", "deepseek-coder-33b", "deepseek-coder-6.7b", "deepseek-llm-7b",
        "deepseek-v2", "deepseek-v2-lite", "deepseek-v3", "deepseek-v3.2"}},
      {"70b", {"llama-2-70b", "llama-3-70b", "llama-3.1-70b", "llama-3.3-70b"}},
      {"qwen2.5-7b", {"qwen2-7b"}},  // not Qwen2.5-VL
      {"Qwen/Qwen2.5-Coder-32B-Instruct", {"qwen2.5-32b"}},
      {"deepseek-ai/DeepSeek-R1", {"deepseek-v3"}},
      {"deepseek-ai/DeepSeek-R1-Distill-Llama-8B", {"llama-3.1-8b"}},
      {"deepseek-ai/DeepSeek-R1-Distill-Other-3B", {}},
      {"Qwen/Qwen2.5-Omni-7B", {}},  // its language model alone is known
      {"qwen3-30b", {"qwen3-30b-a3b"}},
      {"deepseek 33b", {}},
      {"llama 405b", {"llama-3.1-405b"}},
      {"no-such-model", {}},
      {"", {}}};
  for (const auto& [word, models] : expected) {
    CAPTURE(word);
    CHECK(models_called(fixtures::configs(), word) == models);
  }
}

TEST_CASE("every model is found by its own name alone") {
  for (const auto& name : config_names(fixtures::configs(), "models"))
    CHECK(models_called(fixtures::configs(), name) == Names{name});
}

}  // namespace everyday_name_test
