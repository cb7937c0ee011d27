// Llama and its kin, gpt2 and gpt_neox: what their classes take for a field that a file leaves out.
#include "costmodel/model/hf_families.hpp"

#include <doctest/doctest.h>

#include <string>

#include "costmodel/config/yaml.hpp"
#include "costmodel/model/hf_config.hpp"
#include "costmodel/model/model_reader.hpp"
#include "costmodel/model/model_spec.hpp"
#include "tests/costmodel/support/hf_models.hpp"

namespace hf_families_test {

using namespace costmodel;
using fixtures::contains;
using hf_models::fault;
using hf_models::read_hf;
using hf_models::tiny;

namespace {

Value published(const std::string& name) {
  return parse_yaml(hf_models::published(name), name + ".json");
}

}  // namespace

TEST_CASE("defaults of the classes") {
  CHECK(read_hf(tiny("{}")).kv_heads == 4);
  CHECK_FALSE(read_hf(tiny("{}")).tie_embeddings);
  CHECK(read_hf(tiny("{tie_word_embeddings: true}")).tie_embeddings);
  CHECK(read_hf(tiny("{head_dim: null}")).head_dim == 16);
  CHECK(read_hf(tiny("{model_type: qwen3}")).head_dim == 128);
  CHECK(read_hf(tiny("{model_type: qwen2}")).qkv_bias);
  CHECK_FALSE(read_hf(tiny("{model_type: mistral, attention_bias: true}")).qkv_bias);
  const auto neox = read_hf(tiny("{model_type: gpt_neox}"));
  CHECK((neox.parallel_block && neox.qkv_bias && neox.linear_bias && !neox.tie_embeddings));
  CHECK_FALSE(read_hf(tiny("{model_type: gpt_neox, use_parallel_residual: false}")).parallel_block);
}

TEST_CASE("gpt2 takes both spellings, and n_inner null is four times the width") {
  const auto gpt2 = read_hf(tiny("{model_type: gpt2, n_inner: null, intermediate_size: null}"));
  CHECK(gpt2.ffn_hidden == 256);
  CHECK(gpt2.tie_embeddings);
  CHECK(gpt2.max_positions == 1024);
  CHECK(gpt2.dropout == 0.1);
  CHECK(read_hf(tiny("{model_type: gpt2, n_inner: 96}")).ffn_hidden == 96);
  CHECK(read_hf(tiny("{model_type: gpt2, n_layer: 3}")).layers == 3);
  CHECK(contains(fault(parse_yaml("{model_type: gpt2}", "c.json")), "'n_layer'"));
}

TEST_CASE("activations, biases and windows") {
  CHECK(read_hf(tiny("{hidden_act: gelu_fast}")).activation == ActivationFunction::gelu);
  CHECK(read_hf(tiny("{hidden_act: swish}")).activation == ActivationFunction::silu);
  CHECK(read_hf(tiny("{hidden_act: relu2}")).activation == ActivationFunction::squared_relu);
  const auto biased = read_hf(tiny("{attention_bias: true, mlp_bias: true}"));
  CHECK((biased.qkv_bias && biased.linear_bias));
  const auto half = read_hf(tiny("{attention_bias: true}"));
  CHECK((half.qkv_bias && !half.linear_bias));
  CHECK(contains(half.source, "bias of the attention output is left out"));
  CHECK(read_hf(published("mistral-7b")).sliding_window == 4096);
  CHECK(read_hf(published("qwen2-7b")).sliding_window == 0);  // switched off
  const auto switched =
      read_hf(tiny("{model_type: qwen2, num_hidden_layers: 4, use_sliding_window: true, "
                   "sliding_window: 32, max_window_layers: 3}"));
  CHECK((switched.sliding_window == 32 && switched.attention_pattern == "FFFS"));
}

TEST_CASE("experts: dense layers must be the first, and every other layer sparse") {
  const auto tiny_moe = [](const std::string& changes) {
    Value map = tiny(
        "{model_type: qwen3_moe, num_experts: 8, num_experts_per_tok: 2, "
        "moe_intermediate_size: 32, num_hidden_layers: 4}");
    const Value over = parse_yaml(changes, "config.json");
    for (const auto& entry : over.entries) map.set(entry.key, entry.value);
    return map;
  };
  const auto model = read_hf(tiny_moe("{mlp_only_layers: [0, 1]}"));
  CHECK(model.first_dense_layers == 2);
  CHECK(model.moe_layers(0, 4) == 2);
  CHECK(contains(fault(tiny_moe("{mlp_only_layers: [2]}")), "are not the first layers"));
  CHECK(contains(fault(tiny_moe("{decoder_sparse_step: 2}")), "not every layer has experts"));
  CHECK(contains(fault(tiny_moe("{num_experts: 1}")), "top_k 2 exceeds the 1 experts"));
  CHECK(contains(fault(tiny_moe("{moe_intermediate_size: null}")), "'moe_intermediate_size'"));
}

TEST_CASE("latent attention: null ranks, and predictions beyond the next token") {
  const Value v3 = published("deepseek-v3");
  CHECK(contains(read_hf(v3).source, "its 1 multi-token prediction layer is left out"));
  Value lite = v3;
  lite.set("model_type", scalar_value("deepseek_v2"));
  lite.set("q_lora_rank", Value{});
  CHECK(read_hf(lite).q_lora_rank == 0);
  CHECK(read_hf(lite).head_dim == 192);
  Value broken = v3;
  broken.set("kv_lora_rank", Value{});
  CHECK(contains(fault(broken), "lacks the key 'kv_lora_rank'"));
}

}  // namespace hf_families_test
