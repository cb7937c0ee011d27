// Decoders of the llama family with other layers and norms. The configurations are written here
// from the published fields; the counts are those of the published weights (safetensors totals on
// the Hub), each also worked out from the modules of the transformers classes.
#include "costmodel/model/hf_decoders.hpp"

#include <doctest/doctest.h>

#include <string>

#include "tests/costmodel/support/hf_models.hpp"

namespace hf_decoders_test {

using namespace costmodel;
using fixtures::contains;
using hf_models::counted_over_operators;
using hf_models::fault;
using hf_models::Imported;
using hf_models::imported;
using hf_models::with;

namespace {

// microsoft/Phi-3-mini-4k-instruct
const char* const phi3 =
    R"({"model_type": "phi3", "num_hidden_layers": 32, "hidden_size": 3072,
 "num_attention_heads": 32, "num_key_value_heads": 32, "intermediate_size": 8192,
 "vocab_size": 32064, "hidden_act": "silu", "tie_word_embeddings": false, "rope_theta": 10000.0,
 "rope_scaling": null, "sliding_window": 2047, "attention_bias": false, "resid_pdrop": 0.0,
 "embd_pdrop": 0.0, "attention_dropout": 0.0, "max_position_embeddings": 4096,
 "original_max_position_embeddings": 4096, "rms_norm_eps": 1e-05})";

// google/gemma-2-9b
const char* const gemma2 =
    R"({"model_type": "gemma2", "num_hidden_layers": 42, "hidden_size": 3584,
 "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 256, "intermediate_size": 14336,
 "vocab_size": 256000, "hidden_act": "gelu_pytorch_tanh", "hidden_activation": "gelu_pytorch_tanh",
 "attention_bias": false, "attention_dropout": 0.0, "sliding_window": 4096,
 "attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0, "query_pre_attn_scalar": 256,
 "rope_theta": 10000.0, "cache_implementation": "hybrid"})";

// google/gemma-3-1b-pt
const char* const gemma3 =
    R"({"model_type": "gemma3_text", "num_hidden_layers": 26, "hidden_size": 1152,
 "num_attention_heads": 4, "num_key_value_heads": 1, "head_dim": 256, "intermediate_size": 6912,
 "vocab_size": 262144, "hidden_activation": "gelu_pytorch_tanh", "attention_bias": false,
 "sliding_window": 512, "sliding_window_pattern": 6, "rope_theta": 1000000,
 "rope_local_base_freq": 10000, "query_pre_attn_scalar": 256, "attn_logit_softcapping": null,
 "final_logit_softcapping": null, "rope_scaling": null})";

// google/gemma-3-4b-pt: the text model names only what differs from its class.
const char* const gemma3_nested =
    R"({"architectures": ["Gemma3ForConditionalGeneration"], "model_type": "gemma3",
 "mm_tokens_per_image": 256, "vision_config": {"hidden_size": 1152, "num_hidden_layers": 27},
 "text_config": {"model_type": "gemma3_text", "hidden_size": 2560, "intermediate_size": 10240,
  "num_hidden_layers": 34, "rope_scaling": {"factor": 8.0, "rope_type": "linear"},
  "sliding_window": 1024}})";

// allenai/OLMo-2-1124-7B
const char* const olmo2 =
    R"({"model_type": "olmo2", "num_hidden_layers": 32, "hidden_size": 4096,
 "num_attention_heads": 32, "num_key_value_heads": 32, "intermediate_size": 11008,
 "vocab_size": 100352, "hidden_act": "silu", "tie_word_embeddings": false, "rope_theta": 500000,
 "attention_bias": false, "attention_dropout": 0.0})";

// openai/gpt-oss-20b
const char* const gpt_oss =
    R"({"model_type": "gpt_oss", "num_hidden_layers": 24, "hidden_size": 2880, "head_dim": 64,
 "num_attention_heads": 64, "num_key_value_heads": 8, "intermediate_size": 2880,
 "num_local_experts": 32, "num_experts_per_tok": 4, "experts_per_token": 4, "vocab_size": 201088,
 "sliding_window": 128, "attention_bias": true, "attention_dropout": 0.0, "hidden_act": "silu",
 "swiglu_limit": 7.0, "tie_word_embeddings": false, "rope_theta": 150000,
 "rope_scaling": {"rope_type": "yarn", "factor": 32.0}, "initial_context_length": 4096,
 "quantization_config": {"quant_method": "mxfp4"}, "router_aux_loss_coef": 0.9})";

// Qwen/Qwen3-Next-80B-A3B-Instruct
const char* const qwen3_next =
    R"({"model_type": "qwen3_next", "num_hidden_layers": 48, "hidden_size": 2048, "head_dim": 256,
 "num_attention_heads": 16, "num_key_value_heads": 2, "intermediate_size": 5120,
 "num_experts": 512, "num_experts_per_tok": 10, "moe_intermediate_size": 512,
 "shared_expert_intermediate_size": 512, "decoder_sparse_step": 1, "mlp_only_layers": [],
 "vocab_size": 151936, "hidden_act": "silu", "full_attention_interval": 4,
 "linear_conv_kernel_dim": 4, "linear_key_head_dim": 128, "linear_num_key_heads": 16,
 "linear_num_value_heads": 32, "linear_value_head_dim": 128, "partial_rotary_factor": 0.25,
 "rope_theta": 10000000, "norm_topk_prob": true, "attention_bias": false,
 "tie_word_embeddings": false, "router_aux_loss_coef": 0.001})";

void check(const Imported& i, double published) {
  CHECK(parameter_count(i.model) == published);
  CHECK(counted_over_operators(i.model) == published);
  CHECK(hf_models::reads_back(i.model));
  for (const std::string& sentence : i.told) CHECK_FALSE(contains(sentence, "not understood"));
}

}  // namespace

TEST_CASE("Phi-3 mini: the published count, and a window in every layer") {
  const Imported i = imported(phi3);
  check(i, 3'821'079'552);
  CHECK(i.model.sliding_window == 2047);
  CHECK(i.model.attention_pattern.empty());
  CHECK(i.told.empty());
}

TEST_CASE("Gemma 2 9B: norms on both sides, a window in every second layer") {
  const Imported i = imported(gemma2);
  check(i, 9'241'705'984);
  CHECK(i.model.attention_pattern == "SF");
  CHECK(i.model.norms() == 2);
  CHECK(i.tells("attn_logit_softcapping is left out"));
  CHECK(i.tells("final_logit_softcapping is left out"));
}

TEST_CASE("Gemma 3 1B: five windows, then full attention; the last two of 26 have windows") {
  const Imported i = imported(gemma3);
  check(i, 999'885'952);
  CHECK(i.model.attention_pattern == "SSSSSF");
  CHECK(i.model.attention_layers('F', 0, 26) == 4);
  CHECK(i.tells("rope_local_base_freq"));
  CHECK_FALSE(i.tells("softcapping"));
}

// 4,300,079,472 of the published weights less 416,866,032 of the vision tower and 2,950,272 of the
// projector (1,152 x 2,560 and a norm of 1,152).
TEST_CASE("Gemma 3 4B: the language model of text_config, with its class's sizes") {
  const Imported i = imported(gemma3_nested);
  check(i, 3'880'263'168);
  CHECK((i.model.heads == 8 && i.model.kv_heads == 4 && i.model.vocab == 262'208));
  CHECK(i.tells("rope_scaling linear is left out"));
}

TEST_CASE("OLMo 2 7B: norms on results, over all heads at once") {
  const Imported i = imported(olmo2);
  check(i, 7'298'617'344);
  CHECK(i.model.norm_placement == NormPlacement::branch);
  CHECK(i.told.empty());
}

TEST_CASE("gpt-oss 20B: biases in experts and router, sinks, windows in every second layer") {
  const Imported i = imported(gpt_oss);
  check(i, 20'914'757'184);
  CHECK(i.model.attention_pattern == "SF");
  CHECK((i.model.attention_sinks && i.model.linear_bias && i.model.qkv_bias));
  CHECK(i.tells("quantization_config is left out"));
  CHECK(i.tells("rope_scaling yarn is left out"));
  CHECK(i.tells("swiglu_limit"));
}

// 81,324,862,720 with the layer of multi-token prediction that the published weights have: a layer
// of full attention and experts, the product of 2h to h, and three norms.
TEST_CASE("Qwen3-Next 80B: delta nets, gates, a shared expert, without multi-token prediction") {
  const Imported i = imported(qwen3_next);
  const double h = 2048, prediction = parameters_per_moe_layer(i.model) + 2 * h * h + 3 * h;
  CHECK(prediction == 1'650'471'424);
  check(i, 81'324'862'720 - prediction);
  CHECK(i.model.attention_pattern == "DDDF");
  CHECK(i.tells("multi-token prediction"));
  CHECK(i.model.rotary_percent == 0.25);
}

TEST_CASE("layer_types say which layers, and must name all of them") {
  const std::string two = with(gpt_oss, "\"num_hidden_layers\": 24", "\"num_hidden_layers\": 3");
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
  const auto wrong = [](const char* text, const char* word, const char* other) {
    return fault(with(text, word, other));
  };
  CHECK(contains(wrong(phi3, "\"hidden_size\": 3072", "\"hidden_size\": 3073"),
                 "hidden_size 3073 is not divisible by num_attention_heads 32"));
  CHECK(contains(wrong(gemma2, "\"vocab_size\": 256000, ", ""), "lacks the key 'vocab_size'"));
  CHECK(contains(wrong(gemma2, "\"sliding_window\": 4096", "\"sliding_window\": \"all\""),
                 "sliding_window: 'all' is not a whole number"));
  CHECK(contains(wrong(gemma2, "\"num_key_value_heads\": 8", "\"num_key_value_heads\": 5"),
                 "kv_heads 5 does not divide heads 16"));
  CHECK(contains(wrong(olmo2, "\"silu\"", "\"siluu\""), "did you mean 'silu'?"));
  CHECK(contains(wrong(gpt_oss, "\"num_experts_per_tok\": 4", "\"num_experts_per_tok\": 64"),
                 "top_k 64 exceeds the 32 experts"));
  CHECK(contains(wrong(qwen3_next, "\"mlp_only_layers\": []", "\"mlp_only_layers\": [0]"),
                 "not every layer has experts"));
  CHECK(contains(wrong(qwen3_next, "\"shared_expert_intermediate_size\": 512",
                       "\"shared_expert_intermediate_size\": 700"),
                 "no multiple of moe_intermediate_size 512"));
  CHECK(contains(
      wrong(qwen3_next, "\"linear_num_value_heads\": 32", "\"linear_num_value_heads\": 24"),
      "does not divide linear_num_value_heads 24"));
}

TEST_CASE("a field that nobody knows is told") {
  CHECK(imported(with(olmo2, "\"attention_dropout\"", "\"wonder\": 3, \"attention_dropout\""))
            .tells("wonder of config.json is not understood"));
}

}  // namespace hf_decoders_test
