// The GPT family beside gpt2 and gpt_neox, and BERT. The configurations are written here from the
// published fields; the counts are those of the published weights (safetensors totals on the Hub),
// each also worked out from the modules of the transformers classes.
#include "costmodel/model/hf_families.hpp"

#include <doctest/doctest.h>

#include <string>

#include "tests/costmodel/support/hf_models.hpp"

namespace hf_classic_test {

using namespace costmodel;
using fixtures::contains;
using hf_models::check_parameters;
using hf_models::fault;
using hf_models::Imported;
using hf_models::imported;
using hf_models::with;

namespace {

// tiiuae/falcon-7b and tiiuae/falcon-40b
std::string falcon_7b() { return hf_models::published("falcon-7b"); }
std::string falcon_40b() { return hf_models::published("falcon-40b"); }

// bigscience/bloom-7b1
std::string bloom() { return hf_models::published("bloom-7b1"); }

// facebook/opt-1.3b and facebook/opt-350m
std::string opt() { return hf_models::published("opt-1.3b"); }

// EleutherAI/gpt-neo-1.3B
std::string gpt_neo() { return hf_models::published("gpt-neo-1.3b"); }

// bigcode()/gpt_bigcode-santacoder
std::string bigcode() { return hf_models::published("santacoder"); }

// google-bert/bert-large-uncased
std::string bert() { return hf_models::published("bert-large"); }

}  // namespace

// The published files have the tied output table a second time: 7,217,189,760, of which
// 65,024 x 4,544 twice. transformers' num_parameters() counts it once.
TEST_CASE("Falcon 7B: one norm for both parts, one head of keys and values") {
  const Imported i = imported(falcon_7b());
  check_parameters(i, 7'217'189'760.0 - 65'024.0 * 4'544);
  CHECK((i.model.shared_norm && i.model.parallel_block && i.model.kv_heads == 1));
  CHECK(i.notes.empty());
}

// Worked out from FalconDecoderLayer: 60 layers of 679,510,016, a table of 65,024 x 8,192, a norm.
TEST_CASE("Falcon 40B: a norm each, eight groups") {
  const Imported i = imported(falcon_40b());
  check_parameters(i, 41'303'293'952);
  CHECK((!i.model.shared_norm && i.model.kv_heads == 8));
}

TEST_CASE("Falcon with ALiBi, biases and layers in sequence, as falcon-rw has") {
  std::string text = with(falcon_7b(), "\"alibi\": false", "\"alibi\": true");
  text = with(text, "\"parallel_attn\": true", "\"parallel_attn\": false");
  text = with(text, "\"bias\": false", "\"bias\": true");
  const ModelSpec m = imported(text).model;
  CHECK((m.positions == Positions::alibi && !m.parallel_block && !m.shared_norm && m.qkv_bias));
}

TEST_CASE("BLOOM 7B1: ALiBi has no parameters, the norm after the embedding has") {
  const Imported i = imported(bloom());
  check_parameters(i, 7'069'016'064);
  CHECK((i.model.positions == Positions::alibi && i.model.embedding_norm));
  CHECK(i.notes.empty());
}

TEST_CASE("OPT 1.3B: two rows more than positions") {
  const Imported i = imported(opt());
  check_parameters(i, 1'315'758'080);
  CHECK(i.model.max_positions == 2050);
  CHECK(i.notes.empty());
}

TEST_CASE("OPT 350M: a narrower table, norms after the residuals and none at the end") {
  std::string text = with(opt(), "\"hidden_size\": 2048", "\"hidden_size\": 1024");
  text = with(text, "\"num_attention_heads\": 32", "\"num_attention_heads\": 16");
  text = with(text, "\"ffn_dim\": 8192", "\"ffn_dim\": 4096");
  text = with(text, "\"word_embed_proj_dim\": 2048", "\"word_embed_proj_dim\": 512");
  text = with(text, "\"do_layer_norm_before\": true", "\"do_layer_norm_before\": false");
  const Imported i = imported(text);
  check_parameters(i, 331'196'416);
  CHECK((i.model.embedding_dim == 512 && !i.model.final_norm()));
}

TEST_CASE("GPT-Neo 1.3B: windows in every second layer, no biases on queries, keys and values") {
  const Imported i = imported(gpt_neo());
  check_parameters(i, 1'315'575'808);
  CHECK((i.model.attention_pattern == "FS" && i.model.sliding_window == 256));
  CHECK_FALSE(i.model.qkv_bias);
  CHECK(i.notes.empty());
  const std::string global = with(gpt_neo(), "\"global\", \"local\"], 12", "\"global\"], 24");
  CHECK(imported(global).model.sliding_window == 0);
}

TEST_CASE("SantaCoder: gpt2 with one head of keys and values") {
  const Imported i = imported(bigcode());
  check_parameters(i, 1'124'886'528);
  CHECK(i.model.kv_heads == 1);
  CHECK(i.notes.empty());
}

// bert-large-uncased: 335,141,888 is BertModel, with the pooler and without a head. The head of
// masked language modelling in place of the pooler: 1,024 x 1,024 and a bias less, as much and a
// norm and the bias of 30,522 logits more.
TEST_CASE("BERT large: encoder and pooler, or the head of masked language modelling") {
  const Imported encoder = imported(with(bert(), "BertForMaskedLM", "BertModel"));
  check_parameters(encoder, 335'141'888);
  const Imported masked = imported(bert());
  check_parameters(masked, 335'141'888 + 2 * 1024 + 30'522);
  CHECK_FALSE(masked.model.causal);
  const std::string unnamed = with(bert(), "\"model_type\": \"bert\"", "\"model_type\": null");
  CHECK(imported(with(unnamed, "BertForMaskedLM", "BertModel")).model.pooler);
  const Imported both = imported(with(bert(), "BertForMaskedLM", "BertForPreTraining"));
  CHECK(both.reports("next sentence"));
  // 336,226,108 of the published weights, less the 2 x 1,024 and 2 of the next sentence.
  check_parameters(both, 336'226'108 - 2050);
}

TEST_CASE("faults name the key and its place") {
  const auto wrong = [](const std::string& text, const char* word, const char* other) {
    return fault(with(text, word, other));
  };
  CHECK(contains(wrong(falcon_7b(), "\"num_attention_heads\": 71", "\"num_attention_heads\": 72"),
                 "hidden_size 4544 is not divisible by num_attention_heads 72"));
  CHECK(contains(wrong(falcon_40b(), "\"num_kv_heads\": 8", "\"num_kv_heads\": 7"),
                 "num_kv_heads 7 does not divide num_attention_heads 128"));
  CHECK(contains(wrong(falcon_7b(), "\"multi_query\": true", "\"multi_query\": 1"),
                 "multi_query: '1' is neither true nor false"));
  CHECK(contains(wrong(bloom(), "\"n_layer\": 30, ", ""), "lacks the key 'num_hidden_layers'"));
  CHECK(contains(wrong(gpt_neo(), "\"local\"", "\"nearby\""), "'nearby' is not known"));
  CHECK(contains(wrong(gpt_neo(), "[[[\"global\", \"local\"], 12]]", "[[\"global\"]]"),
                 "no list of kinds and a number"));
  CHECK(contains(wrong(bert(), "\"type_vocab_size\": 2", "\"type_vocab_size\": 0"),
                 "type_vocab_size: 0 is out of range"));
  CHECK(contains(wrong(opt(), "\"relu\"", "\"rulu\""), "did you mean 'relu'?"));
}

}  // namespace hf_classic_test
