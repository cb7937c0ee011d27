// Mamba and Mamba-2. The configurations are written here from the published fields; the counts are
// those of the published weights, each also worked out from the modules of the transformers
// classes.
#include "costmodel/model/hf_scans.hpp"

#include <doctest/doctest.h>

#include <string>

#include "tests/costmodel/support/hf_models.hpp"

namespace hf_scans_test {

using namespace costmodel;
using fixtures::contains;
using hf_models::fault;
using hf_models::Imported;
using hf_models::imported;
using hf_models::with;

namespace {

// state-spaces/mamba-130m-hf
std::string mamba() { return hf_models::published("mamba-130m"); }

// state-spaces/mamba2-130m in the fields of transformers: one group, a vocabulary padded to 50,288.
std::string mamba2() { return hf_models::published("mamba2-130m"); }

}  // namespace

TEST_CASE("Mamba 130M: its published parameters, every channel a head") {
  const Imported i = imported(mamba());
  CHECK(parameter_count(i.model) == 129'135'360);
  CHECK(hf_models::counted_over_operators(i.model) == 129'135'360);
  CHECK(hf_models::reads_back(i.model));
  CHECK((i.model.heads == 1536 && i.model.head_dim == 1 && i.model.dt_rank == 48));
  CHECK(i.notes.empty());
}

TEST_CASE("a rank that is left to the class is a sixteenth of the width, rounded up") {
  const auto rank = [](const char* word) {
    return imported(with(mamba(), "\"time_step_rank\": 48", word)).model.dt_rank;
  };
  CHECK(rank("\"time_step_rank\": \"auto\"") == 48);
  CHECK(rank("\"time_step_rank\": null") == 48);
  CHECK(rank("\"time_step_rank\": 50") == 50);
}

TEST_CASE("Mamba-2 130M: its published parameters") {
  const Imported i = imported(mamba2());
  CHECK(parameter_count(i.model) == 128'989'632);
  CHECK(hf_models::counted_over_operators(i.model) == 128'989'632);
  CHECK(i.notes.empty());
}

TEST_CASE("what is left out is told, what does not fit is refused") {
  CHECK(imported(with(mamba2(), "\"use_bias\": false", "\"use_bias\": true")).reports("use_bias"));
  CHECK(imported(with(mamba2(), "\"use_conv_bias\": true", "\"use_conv_bias\": false"))
            .reports("use_conv_bias false"));
  CHECK(contains(fault(with(mamba2(), "\"num_heads\": 24", "\"num_heads\": 23")),
                 "num_heads 23 x head_dim 64 is not expand x hidden_size 1536"));
  CHECK(contains(fault(with(mamba2(), "\"n_groups\": 1", "\"n_groups\": 5")),
                 "ssm_groups 5 does not divide heads 24"));
  CHECK(contains(fault(with(mamba(), "\"state_size\": 16", "\"state_size\": 0.5")),
                 "state_size: '0.5' is not a whole number"));
}

namespace {

// What the file gives for a key; empty: nothing.
std::string key(const std::string& file, const std::string& name) {
  const Value keys = from_hf_config(parse_yaml(hf_models::published(file), file));
  const Value* const value = keys.find(name);
  return value == nullptr ? "" : value->text;
}

}  // namespace

TEST_CASE("which layers have which mixer") {
  CHECK(key("granite-4.0-h-small", "attention_pattern") == "MMMMMFMMMM");
  CHECK(key("jamba-v0.1", "attention_pattern") == "MMMMFMMM");
  CHECK(key("minimax-m1", "attention_pattern") == "LLLLLLLF");
  CHECK(key("kimi-linear-48b-a3b", "attention_pattern") == "KKKFKKKFKKKFKKKFKKKFKKKFKKF");
  CHECK(key("falcon-h1-7b", "attention_pattern") == "P");
  CHECK(key("rwkv7-2.9b", "attention_pattern") == "R");
  CHECK(key("llama-4-scout", "attention_pattern") == "CCCF");
  CHECK(key("llama-4-maverick", "attention_pattern") == "CCCF");
  CHECK(key("deepseek-v3.2", "attention_pattern") == "I");
  CHECK(key("command-r7b", "attention_pattern") == "SSSF");
}

TEST_CASE("sizes of scans by their families' names") {
  CHECK(key("granite-4.0-h-small", "mamba_head_dim") == "64");
  CHECK(key("granite-4.0-h-small", "shared_experts") == "2");
  CHECK(key("granite-4.0-h-small", "positions") == "none");
  CHECK(key("jamba-v0.1", "mamba_heads") == "8192");
  CHECK(key("jamba-v0.1", "dt_rank") == "256");
  CHECK(key("jamba-v0.1", "moe_offset") == "1");
  CHECK(key("kimi-linear-48b-a3b", "linear_num_value_heads") == "32");
  CHECK(key("kimi-linear-48b-a3b", "positions") == "none");
  CHECK(key("rwkv7-2.9b", "heads") == "40");
  CHECK(key("minimax-m1", "rotary_percent") == "0.5");
}

TEST_CASE("Jamba with one expert has none; Bamba's layers of attention are listed") {
  const auto jamba = hf_models::read_hf(hf_models::tiny(
      "{model_type: jamba, num_hidden_layers: 8, num_key_value_heads: 2, num_experts: 1, "
      "num_experts_per_tok: 2}"));
  CHECK(jamba.experts == 0);
  CHECK(jamba.attention_pattern == "MMMMF");
  const auto bamba = hf_models::read_hf(hf_models::tiny(
      "{model_type: bamba, num_hidden_layers: 4, num_key_value_heads: 2, mamba_n_heads: 8, "
      "attn_layer_indices: [1]}"));
  CHECK(bamba.attention_pattern == "MFM");
  CHECK(bamba.mamba_head_dim == 16);
}

TEST_CASE("a hybrid without experts, and one that has attention alone") {
  const std::string granite = hf_models::published("granite-4.0-h-small");
  const std::string dense = with(granite, "\"num_local_experts\": 72", "\"num_local_experts\": 0");
  const Value keys = from_hf_config(parse_yaml(dense, "c.json"));
  CHECK(keys.find("kind")->text == "llama");
  CHECK(keys.find("ffn_hidden")->text == "1536");
  CHECK(contains(fault(with(hf_models::published("jamba-v0.1"), "\"attn_layer_offset\": 4",
                            "\"attn_layer_offset\": 8")),
                 "attn_layer_offset is not below attn_layer_period"));
}

TEST_CASE("LFM2: convolutions, and attention in few layers") {
  const std::string text = hf_models::published("lfm2-1.2b");
  const Imported dense = imported(text);  // 1,170,340,608 of LiquidAI/LFM2-1.2B
  hf_models::check_parameters(dense, 1'170'340'608);
  CHECK(dense.model.ffn_hidden == 8192);  // two thirds of 12,288
  CHECK(dense.model.attention_pattern == "VVFVVFVVFVFVFVF");
  const Imported sparse = imported(hf_models::published("lfm2-8b-a1b"));  // by its modules
  hf_models::check_parameters(sparse, 8'339'929'856);
  CHECK(published_parameter_count(sparse.model) == 8'339'929'856 + 22 * 32);
  CHECK(active_parameter_count(sparse.model) == 1'557'740'288);
  CHECK(imported(with(text, "\"conv_bias\": false", "\"conv_bias\": true")).reports("conv_bias"));
  CHECK(imported(with(text, "adjust_ff_dim\": true", "adjust_ff_dim\": false")).model.ffn_hidden ==
        12'288);
}

}  // namespace hf_scans_test
