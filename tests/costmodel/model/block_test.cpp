#include "costmodel/model/block.hpp"

#include <doctest/doctest.h>

#include <set>
#include <string>
#include <vector>

#include "costmodel/config/yaml.hpp"
#include "costmodel/model/model_reader.hpp"
#include "tests/costmodel/support/fixtures.hpp"

namespace block_test {

using namespace costmodel;

namespace {

ModelSpec parsed(const std::string& kind, const std::string& more) {
  return read_model(parse_yaml("{kind: " + kind +
                                   ", hidden: 512, heads: 8, ffn_hidden: 1024, vocab: 1024, "
                                   "dropout: 0" +
                                   more + "}",
                               "m.yaml"),
                    "");
}

std::vector<std::string> kinds(const ModelSpec& model) {
  std::vector<std::string> names;
  for (const Block& block : model.blocks()) names.push_back(describe(block));
  return names;
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("a letter names one mixer, and every mixer of a pattern has a name of its own") {
  std::set<char> letters;
  std::set<std::string> names;
  for (const MixerRow& row : mixer_rows()) {
    CHECK(&row_of(row.mixer) == &row);
    if (row.letter == 0) continue;
    CHECK(letters.insert(row.letter).second);
    CHECK(names.insert(describe({row.mixer, FeedForward::dense})).second);
    CHECK(names.insert(describe({row.mixer, FeedForward::experts})).second);
  }
  CHECK(attention_letters().size() == letters.size());
}

TEST_CASE("the kinds of blocks of a model, in one order") {
  CHECK(kinds(parsed("gpt", ", layers: 3")) == Names{"block"});
  const std::string experts = ", experts: 4, top_k: 2";
  CHECK(kinds(parsed("moe", ", layers: 3" + experts)) == Names{"mixture-of-experts"});
  CHECK(kinds(parsed("moe",
                     ", layers: 4, first_dense_layers: 1, attention_pattern: SF, "
                     "sliding_window: 16" +
                         experts)) ==
        Names{"mixture-of-experts", "block with a window", "mixture-of-experts with a window"});
  CHECK(kinds(parsed("hybrid", ", layer_pattern: 'E*-M', mamba_heads: 16, mamba_head_dim: 64" +
                                   experts)) == Names{"Mamba", "attention", "MLP", "experts"});
  CHECK(kinds(parsed("t5", ", encoder_layers: 1, decoder_layers: 2")) ==
        Names{"encoder", "decoder"});
}

TEST_CASE("the block of a layer follows the letters, repeated, and where experts are") {
  const ModelSpec m = parsed("moe",
                             ", layers: 6, attention_pattern: MF, experts: 4, top_k: 2, moe_every: "
                             "2, moe_offset: 1, mamba_heads: 16, mamba_head_dim: 64");
  CHECK(m.block_at(0) == Block{Mixer::scan, FeedForward::dense});
  CHECK(m.block_at(1) == Block{Mixer::attention, FeedForward::experts});
  CHECK(m.block_at(4) == m.block_at(0));
  CHECK(m.recurrent());
  CHECK_FALSE(parsed("gpt", ", layers: 3").recurrent());
  CHECK(parsed("gpt", ", layers: 2, attention_pattern: LF").recurrent());
}

TEST_CASE("what packs samples, cuts contexts or caches keys") {
  const auto of = [](const std::string& more) {
    return parsed("llama", ", layers: 4, attention_pattern: " + more);
  };
  CHECK(parsed("gpt", ", layers: 3").unpacked() == nullptr);
  CHECK(std::string(of("CF, attention_chunk: 8").unpacked()) == "chunks of attention");
  CHECK(std::string(of("L").unpacked()) == "a recurrence");
  CHECK(of("CF, attention_chunk: 8").attends_by_place());
  CHECK_FALSE(of("L").attends_by_place());
  CHECK_FALSE(parsed("llama",
                     ", layers: 4, attention_pattern: I, kv_lora_rank: 64, q_lora_rank: 64, "
                     "index_heads: 4")
                  .attends_by_place());
}

TEST_CASE("mixers without their sizes, and too many kinds, are refused") {
  const auto fault = [](const std::string& more) {
    return fixtures::config_error(
        [&] { parsed("llama", ", layers: 12, attention_pattern: " + more); });
  };
  CHECK(fixtures::contains(fault("CF"), "lacks the key 'attention_chunk'"));
  CHECK(fixtures::contains(fault("F, attention_chunk: 8"), "write C for the layers"));
  CHECK(fixtures::contains(fault("CF, attention_chunk: 0"), "attention_chunk is 0"));
  CHECK(fixtures::contains(fault("SF, sliding_window: 0"), "sliding_window is 0"));
  CHECK(fixtures::contains(fault("F, qk_norm_gains: false"), "qk_norm_gains without qk_norm"));
  CHECK(fixtures::contains(fault("R, head_dim: 32, rwkv_decay_rank: 8, rwkv_rate_rank: 8, "
                                 "rwkv_value_rank: 8, rwkv_gate_rank: 8"),
                           "have 256 columns, hidden is 512"));
  CHECK(fixtures::contains(fault("K"), "lacks the key 'linear_num_key_heads'"));
  CHECK(fixtures::contains(fault("R"), "lacks the key 'rwkv_decay_rank'"));
  CHECK(fixtures::contains(fault("I, index_heads: 4"), "a latent for its queries"));
  CHECK(fixtures::contains(fault("FXF"), "'X' at letter 2 is none of FSDC"));
  CHECK(fixtures::contains(fault("FCLMP, attention_chunk: 8"), "more than 4 kinds"));
}

}  // namespace block_test
