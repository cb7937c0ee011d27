// tests/costmodel/support/hf/*.json are config.json files in the form they are published in on
// Hugging Face, under the name that configs/models gives the same model.
#include "costmodel/model/hf_config.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>

#include "costmodel/config/yaml.hpp"
#include "costmodel/model/model_reader.hpp"
#include "costmodel/model/model_spec.hpp"
#include "costmodel/model/parameter_count.hpp"
#include "tests/costmodel/support/fixtures.hpp"

namespace hf_config_test {

namespace {

using costmodel::ConfigError;
using costmodel::ModelSpec;
using costmodel::Value;
using fixtures::contains;

const std::string root = SHARDPLAN_SOURCE_DIR;

Value published(const std::string& name) {
  return costmodel::load_yaml(root + "/tests/costmodel/support/hf/" + name + ".json");
}

ModelSpec read_hf(const Value& map) {
  return costmodel::read_model(costmodel::from_hf_config(map), "");
}

// Everything that changes an operator; the source is a sentence for people.
std::string shape(ModelSpec model) {
  model.source.clear();
  return costmodel::to_yaml(costmodel::to_value(model));
}

// A llama of one layer, with the keys of `changes` (YAML) set; null takes a key away.
Value tiny(const std::string& changes) {
  Value map = costmodel::parse_yaml(
      "{\"model_type\": \"llama\", \"num_hidden_layers\": 1, \"hidden_size\": 64,\n"
      " \"num_attention_heads\": 4, \"intermediate_size\": 128, \"vocab_size\": 100}",
      "config.json");
  const Value over = costmodel::parse_yaml(changes, "config.json");
  for (const auto& entry : over.entries) map.set(entry.key, entry.value);
  return map;
}

std::string fault(const Value& map) {
  try {
    read_hf(map);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no fault";
}

}  // namespace

TEST_CASE("published configurations are the models of configs/models") {
  for (const auto* name :
       {"llama-3-8b", "mistral-7b", "qwen2-7b", "qwen3-8b", "gpt2", "gpt-neox-20b", "mixtral-8x7b",
        "qwen3-30b-a3b", "deepseek-v3", "t5-3b", "t5-11b"}) {
    CAPTURE(name);
    const ModelSpec theirs = read_hf(published(name));
    const ModelSpec ours = costmodel::read_model(
        costmodel::load_yaml(root + "/configs/models/" + name + ".yaml"), name);
    CHECK(costmodel::parameter_count(theirs) == costmodel::parameter_count(ours));
    const bool rounded = std::string(name) == "deepseek-v3" || std::string(name).starts_with("t5");
    if (!rounded)  // published to three digits
      CHECK(costmodel::parameter_count(theirs) == *ours.published_parameters);
    CHECK(shape(theirs) == shape(ours));
    CHECK(theirs.assumed.empty());
  }
}

TEST_CASE("values keep the place they were read at") {
  const Value map = costmodel::from_hf_config(published("llama-3-8b"));
  const costmodel::Mark& mark = map.find("layers")->mark;
  CHECK(mark.file.ends_with("llama-3-8b.json"));
  CHECK(mark.line == 14);
  CHECK(map.find("source")->text == "Hugging Face config.json, model_type llama");
}

TEST_CASE("what is a Hugging Face configuration") {
  CHECK(costmodel::is_hf_config(published("gpt2")));
  CHECK(costmodel::is_hf_config(costmodel::parse_yaml("{architectures: [GPT2LMHeadModel]}", "")));
  CHECK_FALSE(costmodel::is_hf_config(costmodel::parse_yaml("{kind: gpt, model_type: x}", "")));
  CHECK_FALSE(costmodel::is_hf_config(costmodel::parse_yaml("[model_type]", "")));
  CHECK_FALSE(costmodel::is_hf_config(costmodel::parse_yaml("{layers: 2}", "")));
}

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
  CHECK(contains(fault(costmodel::parse_yaml("{model_type: gpt2}", "c.json")), "'n_layer'"));
}

TEST_CASE("T5: one depth for both stacks, the gate in the activation's name, classes that differ") {
  const auto t5 = [](const std::string& changes) {
    Value map = costmodel::parse_yaml(
        "{\"model_type\": \"t5\", \"num_layers\": 3, \"d_model\": 64, \"num_heads\": 4,\n"
        " \"d_ff\": 128, \"vocab_size\": 100}",
        "config.json");
    const Value over = costmodel::parse_yaml(changes, "config.json");
    for (const auto& entry : over.entries) map.set(entry.key, entry.value);
    return map;
  };
  const ModelSpec plain = read_hf(t5("{}"));
  CHECK((plain.encoder_layers == 3 && plain.decoder_layers == 3 && plain.head_dim == 64));
  CHECK((plain.tie_embeddings && !plain.gated_mlp && plain.dropout == 0.1));
  CHECK(read_hf(t5("{num_decoder_layers: 5}")).decoder_layers == 5);
  CHECK(read_hf(t5("{num_decoder_layers: null}")).decoder_layers == 3);
  CHECK(read_hf(t5("{decoder_layers: 7}")).decoder_layers == 7);  // ours wins
  const ModelSpec gated =
      read_hf(t5("{feed_forward_proj: gated-gelu, tie_word_embeddings: false}"));
  CHECK((gated.gated_mlp && gated.activation == costmodel::ActivationFunction::gelu));
  CHECK_FALSE(gated.tie_embeddings);
  const ModelSpec multilingual = read_hf(t5("{model_type: mt5}"));
  CHECK((multilingual.gated_mlp && !multilingual.tie_embeddings));
  CHECK(contains(fault(t5("{num_heads: null}")), "lacks the key 'num_heads'"));
  CHECK(contains(fault(t5("{feed_forward_proj: gated-tanh}")),
                 "feed_forward_proj: 'gated-tanh' is not known"));
  CHECK(contains(fault(t5("{relative_attention_num_buckets: 64}")),
                 "relative_attention_num_buckets 64: other tables than of 32 buckets are not "
                 "modelled; set 32"));
}

TEST_CASE("activations, biases and windows") {
  using costmodel::ActivationFunction;
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

TEST_CASE("the language model of a multimodal one, and a family named by its architecture") {
  Value whole = costmodel::parse_yaml(
      "{model_type: llava, vision_config: {hidden_size: 9}, tie_word_embeddings: true}", "c.json");
  whole.set("text_config", published("llama-3-8b"));
  CHECK(read_hf(whole).layers == 32);
  CHECK_FALSE(read_hf(whole).tie_embeddings);
  CHECK(read_hf(tiny("{model_type: null, architectures: [MistralForCausalLM]}")).layers == 1);
}

TEST_CASE("our own keys beside theirs win: `base: config.json` with overrides") {
  const auto model = read_hf(tiny("{layers: 7, tie_embeddings: true}"));
  CHECK(model.layers == 7);
  CHECK(model.tie_embeddings);
}

TEST_CASE("faults name the key of config.json and its place") {
  const auto wrong = [](const char* changes) { return fault(tiny(changes)); };
  CHECK(wrong("{hidden_size: null}") ==
        "config.json:1:1: config.json lacks the key 'hidden_size'; add hidden_size: ...");
  CHECK(contains(wrong("{num_hidden_layers: -3}"),
                 "config.json:1:21: num_hidden_layers: -3 is out of range; allowed:"));
  CHECK(contains(wrong("{hidden_size: \"64\"}"), "hidden_size: '64' is not a whole number"));
  CHECK(contains(wrong("{hidden_size: 64.5}"), "hidden_size: '64.5' is not a whole number"));
  CHECK(contains(wrong("{hidden_size: [64]}"), "hidden_size is a list"));
  CHECK(contains(wrong("{vocab_size: 99999999999999999999}"), "vocab_size"));
  CHECK(contains(wrong("{hidden_size: 66}"),
                 "hidden_size 66 is not divisible by num_attention_heads 4"));
  CHECK(contains(wrong("{num_key_value_heads: 3}"), "num_key_value_heads 3 does not divide"));
  CHECK(contains(wrong("{num_key_value_heads: 8}"), "num_key_value_heads 8 does not divide"));
  CHECK(contains(wrong("{hidden_act: gelu_mew}"), "did you mean 'gelu_new'"));
  CHECK(contains(wrong("{tie_word_embeddings: 1}"), "'1' is neither true nor false"));
  CHECK(contains(wrong("{attention_dropout: 1.5}"), "attention_dropout: 1.5 is out of range"));
}

TEST_CASE("experts: dense layers must be the first, and every other layer sparse") {
  const auto tiny_moe = [](const std::string& changes) {
    Value map = tiny(
        "{model_type: qwen3_moe, num_experts: 8, num_experts_per_tok: 2, "
        "moe_intermediate_size: 32, num_hidden_layers: 4}");
    const Value over = costmodel::parse_yaml(changes, "config.json");
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
  lite.set("model_type", costmodel::scalar_value("deepseek_v2"));
  lite.set("q_lora_rank", Value{});
  CHECK(read_hf(lite).q_lora_rank == 0);
  CHECK(read_hf(lite).head_dim == 192);
  Value broken = v3;
  broken.set("kv_lora_rank", Value{});
  CHECK(contains(fault(broken), "lacks the key 'kv_lora_rank'"));
}

TEST_CASE("families that are not known are named with those that are") {
  CHECK(contains(fault(tiny("{model_type: lama}")), "model_type 'lama' is not known"));
  CHECK(contains(fault(tiny("{model_type: lama}")), "did you mean 'llama'?"));
  for (const auto* moe : {"qwen2_moe", "glm4_moe", "olmoe"}) {
    const std::string text = fault(tiny(fmt::format("{{model_type: {}}}", moe)));
    CHECK(contains(text, "has no operators in this version; known: llama, mistral, qwen2"));
  }
  CHECK(contains(fault(tiny("{model_type: [llama]}")), "model_type is a list"));
  CHECK(contains(fault(tiny("{model_type: null}")), "lacks the key 'model_type'"));
}

TEST_CASE("a truncated file is a fault of the file") {
  const std::string text = "{\"model_type\": \"llama\", \"hidden_size\": 64,";
  CHECK_THROWS_AS(costmodel::parse_yaml(text, "config.json"), ConfigError);
}

TEST_CASE("rotations are read where each version of transformers writes them") {
  CHECK(read_hf(tiny("{}")).rotary_base == 10'000);
  CHECK(read_hf(tiny("{rope_theta: 500000.0}")).rotary_base == 500'000);
  const ModelSpec five = read_hf(tiny(
      "{rope_parameters: {rope_theta: 1000000, rope_type: default}, partial_rotary_factor: 0.5}"));
  CHECK(five.rotary_base == 1e6);
  CHECK(five.rotary_percent == 0.5);
  CHECK(five.rope_scaling_factor == 0);
  const ModelSpec scaled = read_hf(tiny("{rope_scaling: {rope_type: llama3, factor: 8.0}}"));
  CHECK(scaled.rope_scaling_factor == 8);
  CHECK(contains(read_hf(tiny("{rope_scaling: {type: yarn, factor: 40}}")).source, "yarn"));
  CHECK(costmodel::read_model(costmodel::to_value(scaled), "").rope_scaling_factor == 8);
}

}  // namespace hf_config_test
