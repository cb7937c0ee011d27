// Which fields of a config.json cost nothing, and which are told.
#include "costmodel/model/hf_translation.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <string>

#include "tests/costmodel/support/hf_models.hpp"

namespace hf_translation_test {

using namespace costmodel;

TEST_CASE("fields that cost nothing") {
  for (const char* key : {"bos_token_id", "rms_norm_eps", "initializer_range", "torch_dtype",
                          "transformers_version", "use_cache", "time_step_floor"}) {
    CAPTURE(key);
    CHECK(is_costless_hf_field(key));
  }
  for (const char* key : {"hidden_size", "sliding_window", "rope_theta", "quantization_config"})
    CHECK_FALSE(is_costless_hf_field(key));
}

TEST_CASE("of published configurations every field is understood") {
  const std::string folder = std::string(SHARDPLAN_SOURCE_DIR) + "/tests/costmodel/support/hf";
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    std::vector<std::string> notes;
    from_hf_config(load_yaml(file.path().string()), notes);
    for (const std::string& sentence : notes) {
      CAPTURE(file.path().filename().string());
      CAPTURE(sentence);
      const bool weights =
          fixtures::contains(sentence, "quantization_config");  // how they are kept
      CHECK((weights || !fixtures::contains(sentence, "not understood")));
    }
  }
}

TEST_CASE("quantized checkpoints are served in their format") {
  const auto format = [](const std::string& stored) {
    return hf_models::imported(
               "{model_type: llama, num_hidden_layers: 1, hidden_size: 64, num_attention_heads: 4, "
               "intermediate_size: 128, vocab_size: 100, quantization_config: " +
               stored + "}")
        .model.checkpoint;
  };
  const std::string tensors =
      "quant_method: compressed-tensors, config_groups: {group_0: {weights: ";
  CHECK(format("{quant_method: fp8}") == CheckpointFormat::fp8);
  CHECK(format("{quant_method: gptq, bits: 8}") == CheckpointFormat::int8);
  CHECK(format("{quant_method: awq, bits: 4}") == CheckpointFormat::int4);
  CHECK(format("{quant_method: bitsandbytes, load_in_4bit: true}") == CheckpointFormat::int4);
  CHECK(format("{quant_method: bitsandbytes, load_in_8bit: true}") == CheckpointFormat::int8);
  CHECK(format("{quant_method: modelopt, quant_algo: NVFP4}") == CheckpointFormat::nvfp4);
  CHECK(format("{quant_method: modelopt, quant_algo: FP8}") == CheckpointFormat::fp8);
  CHECK(format("{" + tensors + "{num_bits: 8, type: float}}}}") == CheckpointFormat::fp8);
  CHECK(format("{" + tensors + "{num_bits: 8, type: int}}}}") == CheckpointFormat::int8);
  CHECK(format("{" + tensors + "{num_bits: 4, type: int}}}}") == CheckpointFormat::int4);
  CHECK(format("{" + tensors + "{num_bits: 4, type: float}}}}") == CheckpointFormat::nvfp4);
  CHECK(format("{quant_method: another}") == CheckpointFormat::bf16);
}

TEST_CASE("what is advised is not advised again where it is followed") {
  std::vector<std::string> notes;
  const std::string folder = std::string(SHARDPLAN_SOURCE_DIR) + "/tests/costmodel/support/hf";
  const Value published = load_yaml(folder + "/deepseek-v3.json");
  const auto advised = [&](const std::string& over) {
    from_hf_config(published, parse_yaml(over, ""), "x", &notes);
    return std::any_of(notes.begin(), notes.end(), [](const std::string& sentence) {
      return fixtures::contains(sentence, "model.mtp_layers=1");
    });
  };
  CHECK(advised("{layers: 61}"));
  CHECK_FALSE(advised("{mtp_layers: 1}"));
}

TEST_CASE("a value of null is no field, and our own keys beside theirs are ours") {
  const char* const base =
      "{model_type: llama, num_hidden_layers: 1, hidden_size: 64, num_attention_heads: 4, "
      "intermediate_size: 128, vocab_size: 100, wonder: null, tie_embeddings: true, other: 1}";
  const hf_models::Imported i = hf_models::imported(base);
  CHECK_FALSE(i.reports("wonder"));
  CHECK_FALSE(i.reports("tie_embeddings"));
  CHECK(i.notes == std::vector<std::string>{
                       "other of config.json is not understood here and changes nothing"});
}

}  // namespace hf_translation_test
