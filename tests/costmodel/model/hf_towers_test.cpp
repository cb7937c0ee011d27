// Towers of published configurations: vision-language and audio models with their published
// parameters, and what of a file is left out, refused or taken as the class takes it.
#include "costmodel/model/hf_towers.hpp"

#include <doctest/doctest.h>

#include <string>

#include "costmodel/model/tower.hpp"
#include "tests/costmodel/support/hf_models.hpp"

namespace hf_towers_test {

using namespace costmodel;
using fixtures::contains;
using hf_models::fault;
using hf_models::imported;
using hf_models::published;
using hf_models::with;

namespace {

// Of the published weights: the safetensors totals on the Hub; of the others the sum over the
// modules of the class. Tokens of an image, or of a clip of 30 s, as the class makes them.
struct Published {
  const char* name;
  double parameters;
  std::int64_t encoder_tokens, language_tokens;
};

}  // namespace

TEST_CASE("vision-language and audio models have their published parameters and tokens") {
  for (const Published row : {
           Published{"qwen2-vl-7b", 8'291'375'616, 1024, 256},
           {"qwen2.5-vl-7b", 8'292'166'656, 1024, 256},
           {"qwen3-vl-8b", 8'767'123'696, 784, 196},
           {"qwen3-vl-30b-a3b", 31'070'754'032, 784, 196},
           {"llava-1.5-7b", 7'063'427'072, 577, 576},
           {"internvl3-8b", 7'944'373'760, 1025, 256},
           {"pixtral-12b", 12'247'782'400 + 434'957'312, 4096, 4096},  // by its modules
           {"mistral-small-3.1-24b", 24'011'361'280, 12'100, 3025},
           // By its modules.
           {"kimi-vl-a3b", 15'960'110'208 + 416'866'032 + 30'679'808, 4096, 1024},
           {"glm-4.5v", 107'710'933'120, 576, 144},
           {"llama-4-scout", 108'641'793'536, 577, 144},
           {"gemma-3-4b", 4'300'079'472, 4096, 256},
           {"qwen2-audio-7b", 8'397'094'912, 1500, 750},
       }) {
    CAPTURE(std::string(row.name));
    const hf_models::Imported i = imported(published(row.name));
    CHECK(published_parameter_count(i.model) == row.parameters);
    CHECK(hf_models::counted_over_operators(i.model) == parameter_count(i.model));
    CHECK(hf_models::reads_back(i.model));
    CHECK_FALSE(i.reports("not understood"));
    const TowerSpec& tower = towers_of(i.model).front();
    const TowerTokens tokens = tokens_of(tower, tower.usual_size);
    CHECK(tokens.encoder == row.encoder_tokens);
    CHECK(tokens.language == row.language_tokens);
  }
}

TEST_CASE("windows of Qwen2.5-VL, projectors of Qwen3-VL's layers in between") {
  const hf_models::Imported windows = imported(published("qwen2.5-vl-7b"));
  const TowerSpec& tower = towers_of(windows.model).front();
  CHECK((tower.window == 64 && tower.full_layers == 4 && tower.windowed_layers() == 28));
  const hf_models::Imported branches = imported(published("qwen3-vl-8b"));
  CHECK(towers_of(branches.model).front().branches == 3);
  const std::string none = with(published("qwen3-vl-8b"), "[8, 16, 24]", "[]");
  const hf_models::Imported without = imported(none);
  CHECK(towers_of(without.model).front().branches == 0);
}

TEST_CASE("a tower that is not known is left out with its name, one with wrong sizes is refused") {
  const std::string llava = published("llava-1.5-7b");
  const hf_models::Imported i = imported(with(llava, "clip_vision_model", "dinov9"));
  CHECK(i.model.towers == nullptr);
  CHECK(
      i.reports("vision_config of model_type 'dinov9' is not known in a file of model_type "
                "'llava': its tower is left out"));
  CHECK(contains(fault(with(llava, "\"num_attention_heads\": 16", "\"num_attention_heads\": 0")),
                 "num_attention_heads"));
  CHECK(contains(fault(with(llava, "\"hidden_size\": 1024", "\"hidden_size\": 1023")),
                 "hidden 1023 is not divisible by heads 16"));
  CHECK(imported(with(llava, "\"patch_size\": 14", "\"patch_size\": 14, \"wonder\": 1"))
            .reports("wonder of vision_config is not understood here and changes nothing"));
}

TEST_CASE("tiles of large images are named where they are not counted") {
  const auto next = [](const std::string& fields) {
    return hf_models::imported(
        "{model_type: llava_next, text_config: {model_type: llama, num_hidden_layers: 2, "
        "hidden_size: 64, num_attention_heads: 4, vocab_size: 64, intermediate_size: 128}, "
        "vision_config: {model_type: clip_vision_model, image_size: 336, patch_size: 14}" +
        fields + "}");
  };
  CHECK(next(", image_grid_pinpoints: [[336, 672]]").reports("an image is counted as one tile"));
  CHECK_FALSE(next("").reports("tile"));
}

TEST_CASE("parts of a model that are neither language nor towers are named") {
  const std::string text =
      "\"text_config\": {\"model_type\": \"llama\", \"num_hidden_layers\": 1, \"hidden_size\": 64, "
      "\"num_attention_heads\": 4, \"intermediate_size\": 128, \"vocab_size\": 100}";
  const hf_models::Imported i = imported(
      "{\"model_type\": \"speaks\", \"thinker_config\": {\"model_type\": \"thinks\", " + text +
      ", \"audio_config\": {\"model_type\": \"listens\"}}, \"talker_config\": {\"layers\": 2}}");
  CHECK(i.reports("talker_config is left out: a part of the model that is not known here"));
  CHECK(i.reports("audio_config of model_type 'listens' is not known"));
  CHECK_FALSE(i.reports("text_config"));
  CHECK_FALSE(i.reports("thinker_config"));
}

TEST_CASE("the language model of a file is that of text_config or llm_config") {
  const Value file = parse_yaml(
      "{model_type: internvl_chat, tie_word_embeddings: true, llm_config: {hidden_size: 8}}", "");
  CHECK(hf_text_config(file)->find("hidden_size")->text == "8");
  const Value text = hf_language_model(file);
  CHECK(text.find("model_type")->text == "internvl_chat");
  CHECK(text.find("tie_word_embeddings")->text == "true");
  CHECK(text.find("intermediate_size") == nullptr);  // not multimodal: nothing is taken for it
}

}  // namespace hf_towers_test
