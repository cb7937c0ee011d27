// Decoders of the llama family with other layers and norms. The configurations are written here
// from the published fields; the counts are those of the published weights (safetensors totals on
// the Hub), each also worked out from the modules of the transformers classes.
#include "costmodel/model/hf_hooks.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "costmodel/serving/serving_memory.hpp"
#include "costmodel/serving/serving_reader.hpp"
#include "tests/costmodel/support/hf_models.hpp"

namespace hf_hooks_test {

using namespace costmodel;
using fixtures::contains;
using hf_models::check_parameters;
using hf_models::fault;
using hf_models::Imported;
using hf_models::imported;
using hf_models::with;

namespace {

// microsoft/Phi-3-mini-4k-instruct
std::string phi3() { return hf_models::published("phi-3-mini"); }

// google/gemma-2-9b
std::string gemma2() { return hf_models::published("gemma-2-9b"); }

// google/gemma-3-1b-pt
std::string gemma3() { return hf_models::published("gemma-3-1b"); }

// google/gemma-3-4b-pt: the text model names only what differs from its class.
std::string gemma3_nested() { return hf_models::published("gemma-3-4b"); }

// allenai/OLMo-2-1124-7B
std::string olmo2() { return hf_models::published("olmo-2-7b"); }

// openai/gpt-oss-20b
std::string gpt_oss() { return hf_models::published("gpt-oss-20b"); }

// Qwen/Qwen3-Next-80B-A3B-Instruct
std::string qwen3_next() { return hf_models::published("qwen3-next-80b-a3b"); }

}  // namespace

TEST_CASE("Phi-3 mini: the published count, and a window in every layer") {
  const Imported i = imported(phi3());
  check_parameters(i, 3'821'079'552);
  CHECK(i.model.sliding_window == 2047);
  CHECK(i.model.attention_pattern.empty());
  CHECK(i.notes.empty());
}

TEST_CASE("Gemma 2 9B: norms on both sides, a window in every second layer") {
  const Imported i = imported(gemma2());
  check_parameters(i, 9'241'705'984);
  CHECK(i.model.attention_pattern == "SF");
  CHECK(i.model.norms() == 2);
  CHECK(i.model.attention_softcap == 50);
  CHECK(i.model.logits_softcap == 30);
}

TEST_CASE("Gemma 3 1B: five windows, then full attention; the last two of 26 have windows") {
  const Imported i = imported(gemma3());
  check_parameters(i, 999'885'952);
  CHECK(i.model.attention_pattern == "SSSSSF");
  std::vector<int> full;
  for (int layer = 0; layer < 26; ++layer)
    if (i.model.attention_at(layer) == 'F') full.push_back(layer);
  CHECK(full == std::vector{5, 11, 17, 23});
  CHECK(i.reports("rope_local_base_freq"));
}

// Of the published weights 416,866,032 are the vision tower's and 2,950,272 the projector's (1,152
// x 2,560 and a norm of 1,152).
TEST_CASE("Gemma 3 4B: the language model of text_config, with its class's sizes") {
  const Imported i = imported(gemma3_nested());
  check_parameters(i, 4'300'079'472);
  CHECK((i.model.heads == 8 && i.model.kv_heads == 4 && i.model.vocab == 262'208));
  CHECK(i.model.rope_scaling == RopeScaling::linear);
  CHECK(i.model.rope_scaling_factor == 8);
}

TEST_CASE("OLMo 2 7B: norms on results, over all heads at once") {
  const Imported i = imported(olmo2());
  check_parameters(i, 7'298'617'344);
  CHECK(i.model.norm_placement == NormPlacement::branch);
  CHECK(i.notes.empty());
}

TEST_CASE("gpt-oss 20B: biases in experts and router, sinks, windows in every second layer") {
  const Imported i = imported(gpt_oss());
  check_parameters(i, 20'914'757'184);
  CHECK(i.model.attention_pattern == "SF");
  CHECK((i.model.attention_sinks && i.model.linear_bias && i.model.qkv_bias));
  CHECK(i.reports("quantization_config: mxfp4 weights are served"));
  CHECK(i.model.rope_scaling == RopeScaling::yarn);
  CHECK(i.model.rope_scaling_factor == 32);
  CHECK((i.model.activation_clamp == 7 && i.model.glu_offset == 1));
}

// 81,324,862,720 with the layer of multi-token prediction that the published weights have: a layer
// of full attention and experts, the product of 2h to h, and three norms.
TEST_CASE("Qwen3-Next 80B: delta nets, gates, a shared expert, without multi-token prediction") {
  const Imported i = imported(qwen3_next());
  const double h = 2048, prediction = parameters_per_moe_layer(i.model) + 2 * h * h + 3 * h;
  CHECK(prediction == 1'650'471'424);
  check_parameters(i, 81'324'862'720 - prediction);
  CHECK(i.model.attention_pattern == "DDDF");
  CHECK(i.reports("multi-token prediction"));
  CHECK(i.model.rotary_percent == 0.25);
}

TEST_CASE("layer_types say which layers, and must name all of them") {
  const std::string two = with(gpt_oss(), "\"num_hidden_layers\": 24", "\"num_hidden_layers\": 3");
  const auto typed = [&](const std::string& list) {
    return with(two, "\"head_dim\": 64", "\"head_dim\": 64, \"layer_types\": " + list);
  };
  const std::string mixed = R"(["full_attention", "full_attention", "sliding_attention"])";
  CHECK(imported(typed(mixed)).model.attention_pattern == "FFS");
  CHECK(contains(fault(typed(R"(["full_attention"])")),
                 "layer_types names 1 layers, num_hidden_layers is 3"));
  CHECK(contains(fault(typed(R"(["local", "local", "local"])")), "'local' is not known"));
}

TEST_CASE("faults name the key and its place") {
  const auto wrong = [](const std::string& text, const char* word, const char* other) {
    return fault(with(text, word, other));
  };
  CHECK(contains(wrong(phi3(), "\"hidden_size\": 3072", "\"hidden_size\": 3073"),
                 "hidden_size 3073 is not divisible by num_attention_heads 32"));
  CHECK(contains(wrong(gemma2(), "\"vocab_size\": 256000, ", ""), "lacks the key 'vocab_size'"));
  CHECK(contains(wrong(gemma2(), "\"sliding_window\": 4096", "\"sliding_window\": \"all\""),
                 "sliding_window: 'all' is not a whole number"));
  CHECK(contains(wrong(gemma2(), "\"num_key_value_heads\": 8", "\"num_key_value_heads\": 5"),
                 "num_key_value_heads 5 does not divide num_attention_heads 16"));
  CHECK(contains(wrong(olmo2(), "\"silu\"", "\"siluu\""), "did you mean 'silu'?"));
  CHECK(contains(wrong(gpt_oss(), "\"num_experts_per_tok\": 4", "\"num_experts_per_tok\": 64"),
                 "top_k 64 exceeds the 32 experts"));
  CHECK(contains(wrong(qwen3_next(), "\"mlp_only_layers\": []", "\"mlp_only_layers\": [0]"),
                 "not every layer has experts"));
  CHECK(contains(wrong(qwen3_next(), "\"shared_expert_intermediate_size\": 512",
                       "\"shared_expert_intermediate_size\": 700"),
                 "no multiple of moe_intermediate_size 512"));
  CHECK(contains(
      wrong(qwen3_next(), "\"linear_num_value_heads\": 32", "\"linear_num_value_heads\": 24"),
      "does not divide linear_num_value_heads 24"));
}

TEST_CASE("a field that nobody knows is told") {
  CHECK(imported(with(olmo2(), "\"attention_dropout\"", "\"wonder\": 3, \"attention_dropout\""))
            .reports("wonder of config.json is not understood"));
}

TEST_CASE("Llama 4: a layer without positions for every layer") {
  const std::string scout = hf_models::published("llama-4-scout");
  CHECK(contains(fault(with(scout, "\"no_rope_layers\": [1, ", "\"no_rope_layers\": [")),
                 "names 47 layers"));
}

namespace {

// Of a token in all layers, in 16 bits.
double cached(const ModelSpec& m) {
  return cache_bytes_per_layer(m, 1, CacheFormat::bf16).value * static_cast<double>(m.layers);
}

}  // namespace

TEST_CASE("MiMo-V2: layers with a window have more heads of keys and values, and sinks") {
  const std::string text = hf_models::published("mimo-v2-flash");
  const Imported i = imported(text);
  check_parameters(i, 308'778'768'832);  // by its modules; published as 309 B
  CHECK(active_parameter_count(i.model) == 15'445'924'288);
  CHECK((i.model.kv_heads == 4 && i.model.as_windowed().kv_heads == 8));
  CHECK((i.model.first_dense_layers == 1 && !i.model.attention_sinks && i.model.window_sinks));
  // Keys of 192 and values of 128: 9 layers of 4 heads, 39 of 8.
  CHECK(cached(i.model) == doctest::Approx(2 * (192 + 128) * (9 * 4 + 39 * 8)));
  CHECK(contains(fault(with(text, "\"swa_v_head_dim\": 128", "\"swa_v_head_dim\": 64")),
                 "layers with a window have the others' 128"));
  CHECK(contains(
      fault(with(text, "\"swa_num_key_value_heads\": 8", "\"swa_num_key_value_heads\": 7")),
      "window_kv_heads 7 does not divide heads 64"));
}

TEST_CASE("Step 3.5: layers with a window have more heads, and every head has a gate") {
  const std::string text = hf_models::published("step-3.5-flash");
  const Imported i = imported(text);
  check_parameters(
      i, 196'956'118'272);  // by its modules, less a router's bias; published as 196 B, 11 B active
  CHECK(active_parameter_count(i.model) == 196'956'118'272 - 42.0 * 280 * 3 * 4096 * 1280);
  CHECK((i.model.heads == 64 && i.model.as_windowed().heads == 96));
  CHECK((i.model.common_heads() == 32 && i.model.first_dense_layers == 3));
  CHECK((i.model.gate_size() == 64 && i.model.as_windowed().gate_size() == 96));
  CHECK(cached(i.model) == doctest::Approx(2 * 45 * 2 * 8 * 128));
  CHECK(stage_weights(i.model, WeightFormat::bf16, {}, {0, 45, true, true}).value ==
        doctest::Approx(2 * 196'956'118'272.0));
  CHECK(contains(sizes_fault({.tp = 64}, i.model, ClusterSpec{}), "64 and 96 attention heads"));
  CHECK(contains(fault(with(text, "\"3,4,5,", "\"three,4,5,")),
                 ": moe_layers_enum: 'three' is not "));
  CHECK(contains(fault(with(text, "\"3,4,5,", "\"3,5,")), "a dense layer follows one of experts"));
  CHECK(contains(fault(with(text, "\"num_hidden_layers\": 45", "\"num_hidden_layers\": 49")),
                 "layer_types names 48 layers, num_hidden_layers is 49"));
  CHECK(contains(fault(with(text, "\"share_expert_dim\": 1280", "\"share_expert_dim\": 1000")),
                 "share_expert_dim 1000 is no multiple of moe_intermediate_size 1280"));
}

TEST_CASE("Gemma 4: sizes of layers without a window, keys as values, experts next to an MLP") {
  const Imported large = imported(hf_models::published("gemma-4-31b"));
  check_parameters(large, 30'697'345'280);  // by its modules; published as 30.7 B
  CHECK((large.model.head_dim == 512 && large.model.as_windowed().head_dim == 256));
  CHECK(cached(large.model) == doctest::Approx(2 * 2 * (10 * 4 * 512 + 50 * 16 * 256)));
  CHECK(stage_weights(large.model, WeightFormat::bf16, {}, {0, 60, true, true}).value ==
        doctest::Approx(2 * 30'697'345'280.0));
  check_parameters(imported(hf_models::published("gemma-4-12b")), 11'907'350'272);
  const std::string text = hf_models::published("gemma-4-26b-a4b");
  const Imported sparse = imported(text);  // by its modules; published as 25.2 B, 3.8 B active
  check_parameters(sparse, 25'233'141'760);
  CHECK(active_parameter_count(sparse.model) == 25'233'141'760 - 30.0 * 120 * 3 * 2816 * 704);
  CHECK(sparse.model.shared_experts == 3);
  CHECK(contains(fault(with(text, "\"hidden_size_per_layer_input\": 0",
                            "\"hidden_size_per_layer_input\": 256")),
                 "a table of embeddings for each layer is not modelled"));
  CHECK(contains(fault(with(text, "\"num_kv_shared_layers\": 0", "\"num_kv_shared_layers\": 18")),
                 "layers that use the keys and values of another"));
}

TEST_CASE("a family that no blocks describe is refused with the reason") {
  CHECK(contains(fault(hf_models::tiny("{model_type: longcat_flash}")),
                 "model_type 'longcat_flash' is not modelled: a layer has two attentions"));
}

}  // namespace hf_hooks_test
