// The register of families: published configurations with their published parameters, and what the
// classes of llama, its kin, gpt2 and gpt_neox take for a field that a file leaves out.
#include "costmodel/model/hf_families.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include "costmodel/config/yaml.hpp"
#include "costmodel/model/hf_config.hpp"
#include "costmodel/model/model_reader.hpp"
#include "costmodel/model/model_spec.hpp"
#include "costmodel/model/parameter_count.hpp"
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
  CHECK_FALSE(read_hf(tiny("{model_type: mistral, num_key_value_heads: 2, attention_bias: true}"))
                  .qkv_bias);
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
  const auto stepped = read_hf(tiny_moe("{decoder_sparse_step: 2}"));
  CHECK(stepped.moe_layers(0, 4) == 2);
  CHECK((!stepped.has_experts(0) && stepped.has_experts(1)));
  CHECK(contains(fault(tiny_moe("{decoder_sparse_step: 2, mlp_only_layers: [0]}")),
                 "not every layer has experts"));
  CHECK(contains(fault(tiny_moe("{num_experts: 1}")), "top_k 2 exceeds the 1 experts"));
  CHECK(contains(fault(tiny_moe("{moe_intermediate_size: null}")), "'moe_intermediate_size'"));
}

TEST_CASE("a file that leaves fields out has its class's values, not another's") {
  const auto v3 = read_hf(
      tiny("{model_type: deepseek_v3, num_hidden_layers: 5, n_routed_experts: 8, "
           "num_experts_per_tok: 2, "
           "moe_intermediate_size: 32, kv_lora_rank: 16, qk_nope_head_dim: 8, qk_rope_head_dim: 8, "
           "v_head_dim: 8}"));
  CHECK((v3.shared_experts == 1 && v3.first_dense_layers == 3 && v3.q_lora_rank == 1536));
  const auto gpt_oss =
      read_hf(tiny("{model_type: gpt_oss, num_attention_heads: 8, num_local_experts: 4, "
                   "num_experts_per_tok: 2, num_hidden_layers: 2}"));
  CHECK((gpt_oss.head_dim == 64 && gpt_oss.sliding_window == 128 && gpt_oss.kv_heads == 8));
  const auto gemma = read_hf(tiny("{model_type: gemma2, num_hidden_layers: 2}"));
  CHECK((gemma.attention_softcap == 50 && gemma.logits_softcap == 30));
  const auto mistral = read_hf(tiny("{model_type: mistral, num_attention_heads: 8}"));
  CHECK((mistral.kv_heads == 8 && mistral.sliding_window == 4096));
}

TEST_CASE("a window of null is none, and layers that all attend to everything have none") {
  const auto window = [](const std::string& fields) {
    return read_hf(tiny("{num_hidden_layers: 4, num_key_value_heads: 2, " + fields + "}"));
  };
  for (const char* const none :
       {"model_type: mistral, sliding_window: null", "model_type: olmo3, sliding_window: null",
        "model_type: olmo3, layer_types: [full_attention, full_attention, full_attention, "
        "full_attention]",
        "model_type: qwen2, use_sliding_window: true, sliding_window: 8, max_window_layers: 4",
        "model_type: qwen2, use_sliding_window: true, sliding_window: 8"}) {
    CAPTURE(none);
    CHECK(window(none).sliding_window == 0);
    CHECK(window(none).attention_pattern.empty());
  }
  CHECK(window("model_type: olmo3").attention_pattern == "SSSF");
  const auto granite = window(
      "model_type: granitemoehybrid, num_local_experts: 0, shared_intermediate_size: 32, "
      "mamba_n_heads: 8, layer_types: [linear_attention, linear_attention, linear_attention, "
      "full_attention]");
  CHECK(granite.attention_pattern == "MMMF");
}

TEST_CASE("what a class has in place of what is modelled is refused or named") {
  CHECK(contains(fault(tiny("{num_experts: 8}")), "is read without experts"));
  CHECK_NOTHROW(read_hf(tiny("{num_experts: 1}")));
  CHECK(contains(fault(tiny("{per_layer_config: {'0': {intermediate_size: 8}}}")),
                 "with layers that are equal"));
  CHECK(
      contains(fault(parse_yaml("{model_type: t5, architectures: [T5EncoderModel], num_layers: 2, "
                                "d_model: 64, num_heads: 4, d_ff: 128, vocab_size: 32}",
                                "c.json")),
               "encoder by itself"));
  const std::string labels = to_yaml(tiny("{architectures: [LlamaForSequenceClassification]}"));
  CHECK(hf_models::imported(labels).reports("head of LlamaForSequenceClassification"));
}

TEST_CASE("Llama 4: layers with experts as they are listed, or none") {
  const auto llama4 = [](const std::string& fields) {
    return tiny(
        "{model_type: llama4_text, num_hidden_layers: 4, num_key_value_heads: 2, "
        "intermediate_size_mlp: 256, " +
        fields + "}");
  };
  const auto every_second = read_hf(llama4("num_local_experts: 4, moe_layers: [1, 3]"));
  CHECK((every_second.moe_every == 2 && every_second.moe_offset == 1));
  CHECK(read_hf(llama4("moe_layers: []")).experts == 0);
  CHECK(read_hf(llama4("moe_layers: []")).ffn_hidden == 256);
  CHECK(read_hf(llama4("num_local_experts: 0, interleave_moe_layer_step: 0")).experts == 0);
  CHECK(contains(fault(llama4("moe_layers: [0, 1]")), "not every so many layers"));
  CHECK(read_hf(llama4("no_rope_layer_interval: 2")).attention_pattern == "CF");
}

TEST_CASE("latent attention: null ranks, and predictions beyond the next token") {
  const Value v3 = published("deepseek-v3");
  CHECK(contains(read_hf(v3).source, "its 1 multi-token prediction layer is left out"));
  Value lite = v3;
  lite.set("model_type", scalar_value("deepseek_v2"));
  lite.set("q_lora_rank", Value{});
  CHECK(read_hf(lite).q_lora_rank == 0);
  CHECK(read_hf(lite).head_dim == 192);
  Value saved = v3;  // by transformers, with the sum of both parts of a head
  saved.set("qk_head_dim", scalar_value("192"));
  CHECK(read_hf(saved).qk_head_dim == read_hf(v3).qk_head_dim);
  Value broken = v3;
  broken.set("kv_lora_rank", Value{});
  CHECK(contains(fault(broken), "lacks the key 'kv_lora_rank'"));
}

namespace {

// Of the published weights: the safetensors totals on the Hub, without what the comment names. Of
// the others the sum over the modules of the transformers class.
struct Published {
  const char* name;
  double parameters;
};

void check(const Published& row) {
  CAPTURE(std::string(row.name));
  const hf_models::Imported i = hf_models::imported(hf_models::published(row.name));
  CHECK(published_parameter_count(i.model) == row.parameters);
  CHECK(hf_models::counted_over_operators(i.model) == parameter_count(i.model));
  CHECK(hf_models::reads_back(i.model));
  CHECK_FALSE(i.reports("not understood"));
}

}  // namespace

TEST_CASE("dense decoders have their published parameters") {
  for (const Published row : {
           Published{"llama-3.3-70b", 70'553'706'496},
           {"yi-34b", 34'388'917'248},
           {"qwen2.5-7b", 7'615'616'512},
           {"qwen3-0.6b", 596'049'920},
           {"gemma-2-27b", 27'227'128'320},
           // The language model, its vision tower and a projector of 1,152 x 5,376 and a norm.
           {"gemma-3-27b", 27'009'346'304 + 416'866'032 + 6'194'304},
           {"mistral-small-24b", 23'572'403'200},
           {"ministral-8b", 8'019'808'256},
           // By its modules: the language model, Pixtral's tower, and a projector with a merge.
           {"ministral-3-8b", 8'489'553'920 + 403'489'792 + 25'166'848},
           {"phi-4", 14'659'507'200},
           {"phi-4-mini", 3'836'021'760},
           {"olmo-2-13b", 13'716'198'400},
           {"olmo-3-7b", 7'298'011'136},
           {"granite-3.3-8b", 8'170'864'640},  // by its modules
           {"ernie-4.5-0.3b", 360'748'032},
           {"starcoder2-15b", 15'957'889'024},
           {"seed-oss-36b", 36'151'104'512},
           {"smollm3-3b", 3'075'098'624},
           {"nemotron-nano-9b-v2", 8'888'227'328},
           {"qwen3.5-27b", 26'895'998'464 + 460'730'096},  // by its modules, with the vision tower
       })
    check(row);
}

TEST_CASE("mixtures of experts have their published parameters, with the routers' biases") {
  for (const Published row : {
           Published{"qwen3-235b-a22b", 235'093'634'560},
           // The language model is Qwen3-30B-A3B's.
           {"qwen3-vl-30b-a3b", 30'532'122'624 + 538'631'408},
           {"qwen1.5-moe-a2.7b", 14'315'784'192},
           {"qwen3.5-397b-a17b", 396'346'350'336 + 456'010'480},  // by its modules
           {"olmoe-1b-7b", 6'919'161'856},
           {"gpt-oss-120b", 116'829'156'672},
           {"deepseek-v2-lite", 15'706'484'224},
           {"deepseek-v3", 671'026'419'200},  // without multi-token prediction
           {"kimi-k2", 1'026'408'232'448},
           {"hunyuan-a13b", 80'393'183'232},
           {"ernie-4.5-21b-a3b", 21'825'437'888},
           {"dots.llm1", 142'774'381'696},
           // Less a layer of multi-token prediction, its product of 2h to h and three norms, and a
           // table and a head of its own, 2 x 151,552 x h.
           {"glm-4.5", 358'337'791'296 - 3'988'069'792 - 1'551'892'480},
           {"glm-4.5-air", 110'468'824'832 - 2'375'059'584 - 1'241'513'984},
           {"glm-4.6", 352'797'829'024},  // by its modules, which are GLM-4.5's
           // 228,703,644,928 with the fp8 weights' scales, one for each 128 x 128 of them.
           {"minimax-m2", 228'703'644'928 - 13'880'064},
           {"nemotron-3-nano-30b", 31'577'937'344 + 23 * 128},  // the routers' biases are buffers
       })
    check(row);
}

TEST_CASE("models with mixers or norms of their own have their published parameters") {
  for (const Published row : {
           Published{"llama-4-scout", 108'641'793'536},
           {"llama-4-maverick", 401'583'781'376},
           // Less a layer of multi-token prediction, with a table and a head of its own, and the
           // fp8 weights' scales of these and of the others.
           {"deepseek-v3.2", 685'396'921'376 - 13'477'385'728 - 703'088 - 40'888'496},
           {"minimax-m1", 456'089'655'296},
           {"granite-4.0-h-small", 32'207'337'984},  // by its modules
           {"falcon-h1-7b", 7'585'654'880},
           {"jamba-v0.1", 51'570'323'328},
           {"rwkv7-2.9b", 2'947'735'040},
           {"command-r-35b", 34'980'831'232},
           {"command-r7b", 8'028'033'024},
           {"kimi-linear-48b-a3b", 49'122'681'728},
       })
    check(row);
}

TEST_CASE("families of earlier years, and kin of others, have their published parameters") {
  for (const Published row : {
           Published{"gemma-2b", 2'506'172'416},
           // Less the head's bias; GPT-J's attention output has none, which is counted.
           {"phi-2", 2'779'683'840 - 51'200},
           {"gpt-j-6b", 6'050'882'784 - 50'400 + 28 * 4096},
           {"mpt-7b", 6'649'286'656 + (2 * 32 + 1) * 4096},  // with biases of its norms
           {"dbrx", 131'596'523'520},
           {"stablelm-2-1.6b", 1'644'515'328},
           {"exaone-3.5-7.8b", 7'818'448'896},
           {"exaone-4.0-1.2b", 1'279'391'488},
           {"internlm2-7b", 7'737'708'544},
           {"baichuan2-7b", 7'505'973'248},
           {"minicpm-2b", 2'724'880'896},
           {"chatglm3-6b", 6'243'584'000},
           {"glm-4-9b", 9'399'951'360},
           {"hunyuan-0.5b", 539'010'048},
           {"deepseek-moe-16b", 16'375'728'128},
           {"ling-mini-2.0", 16'255'643'392},
           // Of these the sum over their modules.
           {"trinity-mini", 26'123'974'400},
           {"k-exaone-236b", 236'571'156'352},
           {"solar-open-100b", 102'651'799'552},
           {"glm-5", 743'911'218'432},
           {"falcon-mamba-7b", 7'272'665'088},
           {"roberta-base", 124'697'433},
           // Less the biases of the attention's output and of the head.
           {"phi-3.5-moe", 41'873'153'344 - 32 * 4096 - 32'064},
       })
    check(row);
}

TEST_CASE("fields that only some families have") {
  const auto read = [](const std::string& name) {
    return hf_models::imported(hf_models::published(name)).model;
  };
  const ModelSpec minicpm = read("minicpm-2b");
  CHECK(minicpm.embedding_multiplier == 12);
  CHECK(minicpm.residual_multiplier == doctest::Approx(1.4 / std::sqrt(40.0)));
  CHECK(minicpm.logits_scaling == doctest::Approx(2304.0 / 256));
  CHECK(read("gpt-j-6b").rotary_percent == 0.25);
  CHECK(read("mpt-7b").positions == Positions::alibi);
  const Value exaone = tiny("{model_type: exaone4, num_hidden_layers: 4, sliding_window: 32}");
  CHECK(read_hf(exaone).attention_pattern == "SSSF");
  Value letters = exaone;
  letters.set("sliding_window_pattern", scalar_value("LG"));
  CHECK(read_hf(letters).attention_pattern == "SF");
  const std::string glm =
      "{model_type: glm_moe_dsa, num_hidden_layers: 4, kv_lora_rank: 16, "
      "q_lora_rank: 16, qk_nope_head_dim: 16, qk_rope_head_dim: 8, "
      "v_head_dim: 16, n_routed_experts: 4, num_experts_per_tok: 2, "
      "moe_intermediate_size: 32, mlp_layer_types: [";
  CHECK(read_hf(tiny(glm + "dense, dense, sparse, sparse]}")).first_dense_layers == 2);
  CHECK(contains(fault(tiny(glm + "dense, sparse, dense, sparse]}")), "follows one of experts"));
  CHECK(read_hf(tiny("{model_type: baichuan, max_position_embeddings: 64}")).positions ==
        Positions::rotary);
  CHECK(read_hf(tiny("{model_type: baichuan}")).positions == Positions::alibi);
  CHECK(read("trinity-mini").attention_pattern == "SSSF");
  CHECK(read("trinity-mini").embedding_multiplier == doctest::Approx(std::sqrt(2048.0)));
  const std::string vision =
      "{\"model_type\": \"mllama\", \"text_config\": {\"model_type\": \"mllama_text_model\", "
      "\"num_hidden_layers\": 4, \"hidden_size\": 64, \"num_attention_heads\": 4, "
      "\"intermediate_size\": 128, \"vocab_size\": 100, \"cross_attention_layers\": [1, 3]}}";
  CHECK(hf_models::imported(vision).reports("2 layers attend to the image"));
  std::string omni =
      hf_models::with(vision, "\"text_config\": {", "\"thinker_config\": {\"text_config\": {");
  omni = hf_models::with(omni, "mllama_text_model", "qwen2_5_omni_text") + "}";
  CHECK(hf_models::imported(omni).model.layers == 4);
}

TEST_CASE("a list with one value for each layer is that value, where they are equal") {
  const std::string text = hf_models::published("hunyuan-a13b");
  CHECK(hf_models::imported(text).model.top_k == 8);
  CHECK(contains(fault(parse_yaml(hf_models::with(text, "[8, 8", "[8, 4"), "c.json")),
                 "moe_topk: its layers differ"));
}

TEST_CASE("a family that is not known is read as far as its fields are a llama's, on request") {
  const auto partial = [](const std::string& changes) {
    hf_models::Imported i;
    i.model = read_model(from_hf_config(tiny(changes), i.notes, true), "");
    return i;
  };
  CHECK(contains(fault(tiny("{model_type: lama}")), "model_type 'lama' is not known"));
  const hf_models::Imported i = partial("{model_type: lama, wonder: 3, bos_token_id: 1}");
  CHECK((i.model.kind == ModelKind::llama && i.model.heads == 4));
  CHECK(i.notes == std::vector<std::string>{
                       "model_type 'lama' is not known: its fields are read as those of a model of "
                       "the llama family",
                       "wonder of config.json is not understood here and changes nothing"});
  const hf_models::Imported sparse =
      partial("{model_type: lama, num_experts: 8, num_experts_per_tok: 2}");
  CHECK((sparse.model.kind == ModelKind::moe && sparse.model.experts == 8));
  CHECK(partial("{}").notes.empty());
  CHECK(contains(fixtures::config_error([&] { partial("{model_type: lama, vocab_size: null}"); }),
                 "lacks the key 'vocab_size'"));
}

TEST_CASE("what older transformers write of generation into nested maps changes nothing") {
  for (const char* const name : {"qwen3-30b-a3b", "qwen3-vl-30b-a3b", "mistral-7b", "falcon-7b"}) {
    CAPTURE(name);
    const Value plain = published(name);
    Value dumped = plain;
    Value* const text = const_cast<Value*>(dumped.find("text_config"));
    const Value over = parse_yaml(
        "{top_k: 50, top_p: 1.0, temperature: 1.0, do_sample: false, num_beams: 1, max_length: 20, "
        "pruned_heads: {}, use_bfloat16: false, typical_p: 1.0, length_penalty: 1.0}",
        "c.json");
    for (const auto& entry : over.entries)
      (text == nullptr ? dumped : *text).set(entry.key, entry.value);
    std::vector<std::string> before, after;
    CHECK(to_yaml(from_hf_config(dumped, after)) == to_yaml(from_hf_config(plain, before)));
    CHECK(after == before);
  }
}

TEST_CASE("multi-token prediction of no layers is none") {
  CHECK(hf_models::imported(hf_models::published("kimi-k2")).model.mtp_layers == 0);
  CHECK(hf_models::imported(hf_models::published("minimax-m2")).reports("its 3 multi-token"));
}

}  // namespace hf_families_test
