// The maps `vision` and `audio` of a model: read, refused with place and remedy, and written.
#include "costmodel/model/tower_reader.hpp"

#include <doctest/doctest.h>

#include "tests/costmodel/support/hf_models.hpp"

namespace tower_reader_test {

using namespace costmodel;
using fixtures::contains;

namespace {

const char* const small =
    "patch: 4, image_size: 16, stem: [linear 8 bias, positions 16], layers: 2, hidden: 8, "
    "heads: 2, ffn_hidden: 16, projector: [merge 4, linear 32]";

ModelSpec model_of(const std::string& towers) {
  return read_model(parse_yaml("{kind: llama, layers: 2, hidden: 32, heads: 4, ffn_hidden: 64, "
                               "vocab: 100" +
                                   towers + "}",
                               "m.yaml"),
                    "m");
}

std::string fault(const std::string& towers) {
  return fixtures::config_error([&] { model_of(towers); });
}

std::string vision(const std::string& more) {
  return ", vision: {" + std::string(small) + (more.empty() ? "" : ", ") + more + "}";
}

}  // namespace

TEST_CASE("a tower's layers are bidirectional, with the choices that a model has") {
  const ModelSpec plain = model_of(vision(""));
  const TowerSpec& tower = towers_of(plain).front();
  CHECK((!tower.encoder.causal && tower.encoder.linear_bias && !tower.encoder.gated_mlp));
  CHECK(tower.encoder.positions == Positions::none);
  const double layer = 4 * 8 * 8 + 4 * 8 + 2 * 8 * 16 + 16 + 8 + 4 * 8;
  CHECK(tower_parameters(tower) == 48 * 8 + 8 + 16 * 8 + 2 * layer + 32 * 32);
  CHECK(parameter_count(plain) == parameter_count(model_of("")) + tower_parameters(tower));
  CHECK(hf_models::reads_back(plain));
  const ModelSpec gated = model_of(vision("kind: llama, gated_mlp: true, positions: rotary"));
  CHECK(towers_of(gated).front().encoder.normalization == Normalization::rmsnorm);
  CHECK(hf_models::reads_back(gated));
}

TEST_CASE("both towers at once are written and read, audio after vision") {
  const ModelSpec both = model_of(
      ", audio: {mel_bins: 6, seconds: 2, stem: [conv 8 3 2], layers: 1, hidden: 8, heads: 2, "
      "ffn_hidden: 8, key_bias: false, projector: [linear 32 bias]}" +
      vision("window: 4, full_layers: 1, branches: 1, branch: [merge 4, linear 32]"));
  REQUIRE(towers_of(both).size() == 2);
  CHECK(towers_of(both)[1].input == TowerInput::audio);
  CHECK(towers_of(both)[0].windowed_layers() == 1);
  CHECK(published_parameter_count(both) == parameter_count(both) - 8);  // keys without a bias
  CHECK(hf_models::reads_back(both));
}

TEST_CASE("what does not fit together is refused with its place") {
  CHECK(contains(fault(", vision: {layers: 2}"), "lacks the key 'image_size'"));
  CHECK(contains(fault(", vision: {layerss: 2}"), "vision has no key 'layerss'; did you mean"));
  CHECK(contains(fault(vision("stem: [liner 8]")), "key 'stem' is written twice"));
  const auto with = [](const std::string& word, const std::string& other) {
    return fault(", vision: {" + hf_models::with(small, word, other) + "}");
  };
  CHECK(contains(with("linear 8 bias", "liner 8"), "stem: 'liner 8' is no step; write a list of "));
  CHECK(contains(with("linear 8 bias", "linear 9"),
                 "the stem ends in 9 columns, the layers have "
                 "8"));
  CHECK(contains(with("linear 32", "linear 31"),
                 "the projector ends in 31 columns, the language model has 32"));
  CHECK(contains(with("[merge 4, linear 32]", "linear 32"), "projector is no list"));
  CHECK(contains(fault(vision("branches: 1")), "branches and branch go together"));
  CHECK(contains(fault(vision("full_layers: 3")), "full_layers 3 exceeds the 2 layers"));
  CHECK(contains(fault(vision("causal: true")), "bidirectional layers"));
  CHECK(contains(fault(vision("attention_pattern: M")), "only full attention is modelled"));
  CHECK(contains(fault(vision("wonder: 1")), "model 'vision' has no key 'wonder'"));
}

TEST_CASE("a model that does not decode has no towers") {
  const std::string t5 =
      "{kind: t5, encoder_layers: 1, decoder_layers: 1, hidden: 32, heads: 4" + vision("") + "}";
  CHECK(contains(fixtures::config_error([&] { read_model(parse_yaml(t5, "m.yaml"), "m"); }),
                 "a tower is of a decoder"));
}

TEST_CASE("the keys of a tower are described") {
  for (const TowerInput input : {TowerInput::vision, TowerInput::audio})
    for (const KeyText& key : tower_keys(input)) CHECK_FALSE(key.help.empty());
}

}  // namespace tower_reader_test
