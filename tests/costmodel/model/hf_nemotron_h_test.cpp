// Nemotron-H's config.json.
#include <doctest/doctest.h>

#include <string>

#include "costmodel/config/yaml.hpp"
#include "costmodel/model/hf_config.hpp"
#include "costmodel/model/model_reader.hpp"
#include "costmodel/model/parameter_count.hpp"
#include "tests/costmodel/support/hf_models.hpp"

namespace hf_nemotron_h_test {

using namespace costmodel;

namespace {

std::string nemotron() { return hf_models::published("nemotron-h-8b"); }

ModelSpec imported(const std::string& json) {
  return read_model(from_hf_config(parse_yaml(json, "config.json")), "");
}

std::string with(std::string json, const std::string& word, const std::string& other) {
  const std::size_t at = json.find(word);
  REQUIRE(at != std::string::npos);
  return json.replace(at, word.size(), other);
}

}  // namespace

// The sum of the sizes of its weights (24 scans, 24 MLPs, 4 attentions, 53 norms, two tables), as
// an analysis of the published weights counts them.
TEST_CASE("Nemotron-H 8B, from its config.json, has its published parameters") {
  const ModelSpec m = imported(nemotron());
  CHECK(parameter_count(m) == 8'100'852'736);
  CHECK(read_model(to_value(m), "").layer_pattern == m.layer_pattern);
  CHECK(parameter_count(read_model(to_value(m), "")) == parameter_count(m));
  CHECK(m.layers_of('*', 0, m.layers) == 4);
}

TEST_CASE("its layers as a list of words, of transformers 5.0 or 5.8, are those of the pattern") {
  const auto listed = [](const char* scan, const char* attention) {
    const ModelSpec of_pattern = imported(nemotron());
    std::string words;
    for (const char letter : of_pattern.layer_pattern) {
      const std::string word = letter == 'M' ? scan : letter == '*' ? attention : "mlp";
      words += (words.empty() ? "\"" : ", \"") + word + "\"";
    }
    const std::string key = "\"hybrid_override_pattern\"";
    return with(nemotron(), key, "\"layers_block_type\": [" + words + "], " + key);
  };
  for (const auto& [scan, attention] :
       {std::pair{"mamba", "attention"}, {"linear_attention", "full_attention"}})
    CHECK(imported(listed(scan, attention)).layer_pattern == imported(nemotron()).layer_pattern);
  CHECK(fixtures::contains(
      fixtures::config_error([&] { imported(listed("recurrent", "attention")); }),
      "layers_block_type: 'recurrent' is not known"));
}

TEST_CASE("a shared expert of several widths counts as so many experts") {
  std::string json = with(nemotron(), "*-M-M-M-M-M*", "*EMEMEM-M-M*");
  json = with(json, "\"vocab_size\"",
              "\"n_routed_experts\": 128, \"num_experts_per_tok\": 6, "
              "\"moe_intermediate_size\": 1856, \"n_shared_experts\": 1, "
              "\"moe_shared_expert_intermediate_size\": 3712, \"vocab_size\"");
  const ModelSpec m = imported(json);
  CHECK(m.moe_layers(0, m.layers) == 3);
  CHECK(m.shared_experts == 2);
  CHECK(m.shared_ffn() == 3712);
  const std::string odd = with(json, "3712", "3000");
  CHECK(fixtures::contains(fixtures::config_error([&] { imported(odd); }), "no multiple"));
}

TEST_CASE("what is not known of it is told with its key") {
  const auto fault = [](const std::string& word, const std::string& other) {
    return fixtures::config_error([&] { imported(with(nemotron(), word, other)); });
  };
  CHECK(fixtures::contains(fault("relu2", "tanh"), "mlp_hidden_act"));
  CHECK(fixtures::contains(fault("\"num_hidden_layers\": 52", "\"num_hidden_layers\": 50"),
                           "52 letters"));
}

}  // namespace hf_nemotron_h_test
