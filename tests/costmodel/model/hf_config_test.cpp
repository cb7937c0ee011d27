// tests/costmodel/support/hf/*.json are config.json files in the form they are published in on
// Hugging Face, under the name that configs/models gives the same model.
#include "costmodel/model/hf_config.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <filesystem>
#include <set>
#include <string>
#include <system_error>

#include "costmodel/config/yaml.hpp"
#include "costmodel/model/model_reader.hpp"
#include "costmodel/model/model_spec.hpp"
#include "costmodel/model/parameter_count.hpp"
#include "tests/costmodel/support/hf_models.hpp"

namespace hf_config_test {

namespace {

using costmodel::ConfigError;
using costmodel::ModelSpec;
using costmodel::Value;
using fixtures::contains;
using hf_models::fault;
using hf_models::read_hf;
using hf_models::tiny;

const std::string root = SHARDPLAN_SOURCE_DIR;

Value published(const std::string& name) {
  return costmodel::load_yaml(root + "/tests/costmodel/support/hf/" + name + ".json");
}

// Everything that changes an operator; the source is a sentence for people.
std::string shape(ModelSpec model) {
  model.source.clear();
  return costmodel::to_yaml(costmodel::to_value(model));
}

}  // namespace

TEST_CASE("published configurations are the models of configs/models") {
  // Theirs here leave out the epsilon of the norms.
  const std::set<std::string> others{"bloom-7b1", "gpt-oss-20b", "mamba-130m", "mamba2-130m",
                                     "nemotron-h-8b"};
  int checked = 0;
  for (const auto& name : costmodel::config_names(fixtures::configs(), "models")) {
    const std::string config = root + "/tests/costmodel/support/hf/" + name + ".json";
    std::error_code status;
    if (!std::filesystem::exists(config, status) || others.contains(name)) continue;
    CAPTURE(name);
    const ModelSpec theirs = read_hf(published(name));
    const ModelSpec ours = costmodel::read_model(
        costmodel::load_yaml(root + "/configs/models/" + name + ".yaml"), name);
    CHECK(costmodel::parameter_count(theirs) == costmodel::parameter_count(ours));
    CHECK(shape(theirs) == shape(ours));
    ++checked;
  }
  CHECK(checked >= 60);
}

TEST_CASE("a usual configuration leaves nothing to assume, and has its published parameters") {
  for (const auto* name : {"llama-3-8b", "llama-3.2-1b", "mistral-7b", "qwen2-7b", "qwen3-8b",
                           "gpt2", "gpt-neox-20b", "mixtral-8x7b", "qwen3-30b-a3b"}) {
    CAPTURE(name);
    const ModelSpec theirs = read_hf(published(name));
    const ModelSpec ours = costmodel::read_model(
        costmodel::load_yaml(root + "/configs/models/" + name + ".yaml"), name);
    CHECK(costmodel::parameter_count(theirs) == *ours.published_parameters);
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

TEST_CASE("the language model of a multimodal one, and a family named by its architecture") {
  Value outer = costmodel::parse_yaml(
      "{model_type: llava, vision_config: {hidden_size: 9}, tie_word_embeddings: true}", "c.json");
  outer.set("text_config", published("llama-3-8b"));
  CHECK(read_hf(outer).layers == 32);
  CHECK_FALSE(read_hf(outer).tie_embeddings);
  CHECK(read_hf(tiny("{model_type: null, architectures: [MistralForCausalLM], "
                     "num_key_value_heads: 2}"))
            .layers == 1);
}

TEST_CASE("keys of ours that stand in the file win, but for those that other classes have too") {
  const auto model = read_hf(tiny("{layers: 7, tie_embeddings: true}"));
  CHECK(model.layers == 7);
  CHECK(model.tie_embeddings);
  CHECK(read_hf(tiny("{sliding_window: 32}")).sliding_window == 0);  // llama has no window
}

namespace {

// The model of `tiny` with `over` (YAML) written over it, or the fault.
ModelSpec over_tiny(const std::string& over, const std::string& file = "{}") {
  const Value written = costmodel::parse_yaml(over, "s.yaml");
  return costmodel::read_model(costmodel::from_hf_config(tiny(file), written, "tiny"), "tiny");
}

std::string fault_over(const std::string& over, const std::string& file = "{}") {
  return fixtures::config_error([&] { over_tiny(over, file); });
}

}  // namespace

TEST_CASE("a key of ours over a file wins, whatever its class reads") {
  CHECK(over_tiny("{sliding_window: 32}").sliding_window == 32);
  CHECK(over_tiny("{sliding_window: 32}", "{model_type: qwen2}").sliding_window == 32);
  // 0 is a window of ours, not of Mistral's class.
  CHECK(over_tiny("{sliding_window: 0}",
                  "{model_type: mistral, num_key_value_heads: 2, sliding_window: 8}")
            .sliding_window == 0);
  CHECK(over_tiny("{head_dim: 8, layers: 3, title: Small}").head_dim == 8);
  CHECK(over_tiny("{layers: null}").layers == 1);
  CHECK(over_tiny("{}").layers == 1);
  const std::string experts = "{kind: moe, experts: 4, top_k: 2, num_hidden_layers: 2}";
  CHECK(over_tiny(experts).moe_layers(0, 2) == 2);
}

TEST_CASE("a field of the family over a file takes the place of the file's") {
  CHECK(over_tiny("{num_hidden_layers: 8}").layers == 8);
  CHECK(over_tiny("{num_hidden_layers: 8, layers: 4}").layers == 4);
  CHECK(over_tiny("{num_key_value_heads: 2}").kv_heads == 2);
  CHECK(over_tiny("{rope_scaling: {rope_type: llama3, factor: 4}}").rope_scaling_factor == 4);
  CHECK(over_tiny("{model_type: qwen3, rms_norm_eps: 1e-6, wonder: null}").qk_norm);
}

TEST_CASE("over a file with text_config fields are its, within or without") {
  Value file = costmodel::parse_yaml("{model_type: llava, vision_config: {hidden_size: 9}}", "");
  file.set("text_config", tiny("{}"));
  const auto layers = [&](const std::string& over) {
    const Value written = costmodel::parse_yaml(over, "s.yaml");
    return costmodel::read_model(costmodel::from_hf_config(file, written, "m"), "m").layers;
  };
  CHECK(layers("{}") == 1);
  CHECK(layers("{layers: 3}") == 3);
  CHECK(layers("{num_hidden_layers: 3}") == 3);
  CHECK(layers("{text_config: {num_hidden_layers: 3}}") == 3);
  CHECK(layers("{text_config: {layers: 3}}") == 3);
  CHECK(contains(fixtures::config_error([&] { layers("{text_config: {layerz: 3}}"); }),
                 "s.yaml:1:16: model 'm' has no key 'layerz'; did you mean 'layers'?"));
  CHECK(contains(fixtures::config_error([&] { layers("{vision_config: {hidden_size: 8}}"); }),
                 "has no key 'vision_config'"));
}

TEST_CASE("what is neither a key of ours nor a field of the family is refused over a file") {
  const std::string no_key = "s.yaml:1:2: model 'tiny' has no key ";
  CHECK(contains(fault_over("{hiden: 8192}"),
                 no_key + "'hiden'; did you mean 'hidden'? `shardplan list keys WORD` "));
  CHECK(contains(fault_over("{frobnicate: 3}"), no_key + "'frobnicate'; known: kind, layers"));
  CHECK(contains(fault_over("{num_hidden_layer: 8}"),
                 no_key + "'num_hidden_layer'; did you mean 'num_hidden_layers'?"));
  CHECK(contains(fault_over("{num_local_experts: 8}"),  // of mixtral
                 no_key + "'num_local_experts'; did you mean 'experts'?"));
  CHECK(contains(fault_over("{wonder: 2}", "{wonder: 1}"), no_key + "'wonder'"));
  CHECK(fault_over("{layers: 2}", "{wonder: 1}").empty());
  CHECK(contains(fault_over("{rope_scaling: {rope_type: llama3, factr: 4}}"),
                 "s.yaml:1:36: rope_scaling has no key 'factr'; did you mean 'factor'?"));
}

TEST_CASE("faults name the key of config.json and its place") {
  const auto wrong = [](const char* changes) { return fault(tiny(changes)); };
  CHECK(wrong("{hidden_size: null}") ==
        "config.json:1:1: config.json lacks the key 'hidden_size'; add hidden_size: ...");
  CHECK(contains(wrong("{num_hidden_layers: -3}"),
                 "config.json:1:21: num_hidden_layers: -3 is out of range; allowed:"));
  CHECK(contains(wrong("{hidden_size: \"64\"}"), "hidden_size: '64' is not a"));
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
  CHECK(contains(wrong("{num_hidden_layers: 1000000000}"), "numbers 1 to 100,000"));
  CHECK(contains(wrong("{rope_theta: 1e-320}"), "rotary_base"));
}

TEST_CASE("families that are not known are named with those that are") {
  CHECK(contains(fault(tiny("{model_type: lama}")), "model_type 'lama' is not known"));
  CHECK(contains(fault(tiny("{model_type: lama}")), "did you mean 'llama'?"));
  CHECK(contains(fault(tiny("{model_type: [llama]}")), "model_type is a list"));
  CHECK(contains(fault(tiny("{model_type: null}")), "lacks the key 'model_type'"));
}

TEST_CASE("a truncated file is a fault of the file") {
  const std::string text = "{\"model_type\": \"llama\", \"hidden_size\": 64,";
  CHECK_THROWS_AS(costmodel::parse_yaml(text, "config.json"), ConfigError);
}

}  // namespace hf_config_test
