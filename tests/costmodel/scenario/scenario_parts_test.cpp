#include "costmodel/scenario/scenario_parts.hpp"

#include <doctest/doctest.h>

#include "costmodel/config/yaml.hpp"
#include "costmodel/model/model_reader.hpp"
#include "tests/costmodel/support/fixtures.hpp"
#include "tests/run_program.hpp"

using namespace costmodel;
using fixtures::contains;

TEST_CASE("Model and cluster of a scenario are read alone, and other keys are left") {
  const Value root =
      parse_yaml("{model: gpt2, cluster: {base: dgx-h100, devices: 8}, else: 1}", "parts.yaml");
  MapReader reader(root, "scenario");
  Scenario parts;
  read_parts(reader, config_path({}), parts);
  CHECK(parts.model_text == "gpt2");
  CHECK(parts.cluster.devices == 8);
  CHECK_THROWS_WITH_AS(reader.finish(), doctest::Contains("else"), ConfigError);
}

namespace {

const std::string folder = std::string(SHARDPLAN_SOURCE_DIR) + "/tests/costmodel/support/hf/";

ModelSpec model_of(const std::string& written) {
  return find_model(parse_yaml(written, "s.yaml"), fixtures::configs());
}

// All but where it is published.
std::string shape(ModelSpec model) {
  model.source.clear();
  return to_yaml(to_value(model));
}

}  // namespace

TEST_CASE("Over Hugging Face's file a key does what it does over our file of that model") {
  const auto same = [](const std::string& name, const std::string& over) {
    CAPTURE(name);
    const ModelSpec theirs = model_of("{base: " + folder + name + ".json" + over + "}");
    CHECK(shape(theirs) == shape(model_of("{base: " + name + over + "}")));
    CHECK(theirs.name == name);
    return theirs;
  };
  CHECK(same("llama-3-8b", ", sliding_window: 256").sliding_window == 256);
  const ModelSpec t5 = same("t5-3b", ", decoder_heads: 8, decoder_ffn_hidden: 1024");
  CHECK((t5.decoder_heads == 8 && t5.decoder_ffn_hidden == 1024));
  CHECK(same("mixtral-8x7b", ", moe_latent_size: 1024").moe_latent_size == 1024);
  CHECK(same("llama-3-8b", "").sliding_window == 0);
}

TEST_CASE("A base of another width is questioned, whose heads and MLP it keeps") {
  const ModelSpec model = model_of("{base: qwen3-8b, layers: 40, hidden: 5120}");
  CHECK(contains(model.questioned,
                 "Qwen3 8B with hidden 5120 is no published model: heads 32, "
                 "ffn_hidden 12288 are those of hidden 4096"));
  CHECK(model.title == "Qwen3 8B, changed");
  CHECK(model_of("{base: qwen3-8b, layers: 4}").questioned.empty());
  CHECK(model_of("{base: qwen3-8b, hidden: 4096}").questioned.empty());
  CHECK(model_of("{base: qwen3-8b, hidden: 5120, heads: 40, ffn_hidden: 17408}").questioned == "");
  CHECK(model_of("qwen3-8b").questioned.empty());
}

TEST_CASE("An unknown key over Hugging Face's file is refused where it stands") {
  const program::Scratch scratch;
  scratch.write("llama-3-8b.json", scratch.read(folder + "llama-3-8b.json"));
  scratch.write("mine.yaml", "base: ./llama-3-8b.json\nlayers: 3\nlayerz: 3\n");
  const auto fault = [](const std::string& written) {
    return fixtures::config_error([&] { model_of(written); });
  };
  const std::string file = folder + "llama-3-8b.json";
  CHECK(contains(fault("{base: " + file + ", layerz: 3}"),
                 ": model 'llama-3-8b' has no key 'layerz'; did you mean 'layers'?"));
  CHECK(fault("{base: " + file + ", num_hidden_layers: 3}").empty());
  const std::string mine = scratch.path().string() + "/mine.yaml";
  CHECK(contains(fault("{base: " + mine + ", hidden: 512}"),
                 "mine.yaml:3:1: model 'mine' has no key 'layerz'"));
}

TEST_CASE("Fields of Hugging Face's file that are not understood are named") {
  const program::Scratch scratch;
  const auto questioned = [&](const std::string& more) {
    scratch.write("model.json",
                  "{\"model_type\": \"llama\", \"num_hidden_layers\": 2, \"hidden_size\": 64,\n"
                  "\"num_attention_heads\": 4, \"intermediate_size\": 128, \"vocab_size\": 100" +
                      more + "}");
    return model_of("{base: " + scratch.path().string() + "/model.json}").questioned;
  };
  CHECK(questioned("").empty());
  CHECK(questioned(", \"new_mixer\": 7") ==
        "new_mixer of config.json is not understood here and changes nothing");
  std::string many;
  for (int i = 0; i < 8; ++i) many += ", \"new_" + std::to_string(i) + "\": 7";
  CHECK(contains(questioned(many), "; and 3 more: `shardplan import hf` names them"));
}

TEST_CASE("The family of Hugging Face's file may be written over it") {
  const program::Scratch scratch;
  scratch.write("sizes.json",
                "{\"num_hidden_layers\": 2, \"hidden_size\": 64, \"num_attention_heads\": 4,\n"
                "\"intermediate_size\": 128, \"vocab_size\": 100}");
  const std::string base = "{base: " + scratch.path().string() + "/sizes.json";
  CHECK(model_of(base + ", model_type: llama, layers: 5}").layers == 5);
  CHECK(contains(fixtures::config_error([&] { model_of(base + "}"); }), "lacks the key 'kind'"));
}
