#include "costmodel/scenario/run_traits.hpp"

#include <doctest/doctest.h>

#include "costmodel/config/yaml.hpp"
#include "costmodel/scenario/scenario.hpp"

namespace run_traits_test {

using namespace costmodel;

namespace {

RunTraits traits(const std::string& text) {
  const ConfigPath path{{SHARDPLAN_SOURCE_DIR "/configs"}};
  return traits_of(read_scenario(parse_yaml(text, "s.yaml"), "s", path));
}

std::string scenario(const std::string& model, const std::string& training = "",
                     const std::string& plan = "") {
  return "model: " + model + "\ncluster: {base: dgx-gb200, devices: 64}\n" +
         "training: {global_batch: 256, sequence: 4096, precision: bf16, stack: megatron-bridge" +
         training + "}\nplan: {" + plan + "}\n";
}

}  // namespace

TEST_CASE("a dense model in 16 bits has no mechanism of its own") {
  const RunTraits t = traits(scenario("llama-3-70b"));
  CHECK(t.stack == "megatron-bridge");
  CHECK(t.device == "gb200");
  CHECK(t.family == "llama-3");
  CHECK_FALSE(t.experts);
  CHECK(t.devices == 64);
  CHECK(t.parameters == doctest::Approx(70.6e9).epsilon(0.01));
  CHECK(t.mechanisms.empty());
  CHECK(listed(t).size() == 3);
}

TEST_CASE("what changes the prices of a run is named") {
  using Names = std::vector<std::string>;
  const RunTraits t =
      traits(scenario("deepseek-v3", ", fused_grouped_mlp: true, overlap: {cuda_graph: true}",
                      "dispatcher: hybridep, cp: 2"));
  CHECK(t.experts);
  CHECK(t.family == "deepseek");
  CHECK(t.mechanisms == Names{"latent attention", "fused expert products", "CUDA graphs"});
  CHECK(listed(t).back().name == "CUDA graphs");
}

TEST_CASE("families by their features") {
  const auto family = [](const std::string& model) { return traits(scenario(model)).family; };
  CHECK(family("gemma-3-27b") == "gemma");
  CHECK(family("gemma-2b") == "gemma");
  CHECK(family("qwen3-8b") == "qwen");
  CHECK(family("mixtral-8x7b") == "mixtral");
  CHECK(family("nemotron-4-15b") == "nemotron");
}

TEST_CASE("mixers that are not attention to all tokens are named") {
  using Names = std::vector<std::string>;
  const auto names = [](const std::string& model) { return traits(scenario(model)).mechanisms; };
  CHECK(names("{base: llama-2-7b, attention_pattern: LF}") == Names{"linear attention"});
  CHECK(names("{base: llama-2-7b, attention_pattern: CF, attention_chunk: 1024}") ==
        Names{"attention in chunks"});
  CHECK(names("{base: deepseek-v3, attention_pattern: I, index_heads: 64}") ==
        Names{"latent attention", "sparse attention"});
}

TEST_CASE("families by architecture") {
  for (const auto& [model, family] :
       {std::pair("gpt3-175b", "gpt"), std::pair("bloom-176b", "bloom"), std::pair("mpt-7b", "mpt"),
        std::pair("nemotron-4-15b", "nemotron"), std::pair("llama-2-7b", "llama-2"),
        std::pair("llama-3.1-8b", "llama-3"), std::pair("qwen2-7b", "qwen"),
        std::pair("qwen3-30b-a3b", "qwen"), std::pair("deepseek-v2", "deepseek"),
        std::pair("mixtral-8x7b", "mixtral"), std::pair("t5-11b", "t5"),
        std::pair("mamba2-2.7b", "mamba")}) {
    CAPTURE(model);
    const std::string text =
        std::string("model: ") + model +
        "\ncluster: selene\ntraining: {global_batch: 1536, sequence: 512, precision: bf16}\n";
    CHECK(traits(text).family == family);
  }
}

}  // namespace run_traits_test
