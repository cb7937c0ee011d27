// Models from the text of a config.json, and their parameters counted over the op lists.
#pragma once

#include <string>
#include <vector>

#include "costmodel/base/input_file.hpp"
#include "costmodel/config/yaml.hpp"
#include "costmodel/estimate/layer_mix.hpp"
#include "costmodel/model/hf_config.hpp"
#include "costmodel/model/model_reader.hpp"
#include "costmodel/model/parameter_count.hpp"
#include "tests/costmodel/support/fixtures.hpp"

namespace hf_models {

struct Imported {
  costmodel::ModelSpec model;
  std::vector<std::string> notes;
  // Whether a sentence of `notes` has the words.
  bool reports(const std::string& words) const {
    for (const std::string& sentence : notes)
      if (fixtures::contains(sentence, words)) return true;
    return false;
  }
};

inline Imported imported(const std::string& json) {
  Imported all;
  all.model = costmodel::read_model(
      costmodel::from_hf_config(costmodel::parse_yaml(json, "config.json"), all.notes), "");
  return all;
}

inline costmodel::ModelSpec read_hf(const costmodel::Value& map) {
  return costmodel::read_model(costmodel::from_hf_config(map), "");
}

// A llama of one layer, with the keys of `changes` (YAML) set; null takes a key away.
inline costmodel::Value tiny(const std::string& changes) {
  costmodel::Value map = costmodel::parse_yaml(
      "{\"model_type\": \"llama\", \"num_hidden_layers\": 1, \"hidden_size\": 64,\n"
      " \"num_attention_heads\": 4, \"intermediate_size\": 128, \"vocab_size\": 100}",
      "config.json");
  const costmodel::Value over = costmodel::parse_yaml(changes, "config.json");
  for (const auto& entry : over.entries) map.set(entry.key, entry.value);
  return map;
}

// The text of a published config.json, tests/costmodel/support/hf.
inline std::string published(const std::string& name) {
  return costmodel::read_file(std::string(SHARDPLAN_SOURCE_DIR) + "/tests/costmodel/support/hf/" +
                              name + ".json");
}

inline std::string fault(const std::string& json) {
  return fixtures::config_error([&] { imported(json); });
}

inline std::string fault(const costmodel::Value& map) {
  return fixtures::config_error([&] { read_hf(map); });
}

// The text with `word`, which it must have, replaced.
inline std::string with(std::string json, const std::string& word, const std::string& other) {
  const std::size_t at = json.find(word);
  return at == std::string::npos ? "" : json.replace(at, word.size(), other);
}

// Of an unsharded model, without the rows that pad the vocabulary: the sum over the operators of
// every layer, which the device holds, beside parameter_count's closed forms.
inline double counted_over_operators(const costmodel::ModelSpec& m) {
  costmodel::LayerContext context;
  context.sequence = context.decoder_sequence = 128;
  const auto weights = [&](costmodel::LayerKind kind) {
    return weights_of(costmodel::build_layer(kind, m, context));
  };
  const costmodel::LayerMix all = layer_mix(m, 0, static_cast<int>(m.layers), {});
  double sum = weights(costmodel::LayerKind::embedding) + weights(costmodel::LayerKind::head);
  for (const costmodel::LayerCount& own : layer_counts_of(m, all))
    sum += weights(own.kind) * own.number;
  for (const costmodel::TowerLayers& own : costmodel::tower_layers(m))
    sum += weights(own.kind) * own.number;
  const auto padding = static_cast<double>(costmodel::padded_vocab(m.vocab, 1) - m.vocab);
  const auto width = static_cast<double>(m.embedding_width());
  sum -= 2 * padding * width + (m.head_transform ? padding : 0);
  return m.tie_embeddings ? sum - static_cast<double>(m.vocab) * width : sum;
}

// What is written reads back as the same model.
inline bool reads_back(const costmodel::ModelSpec& m) {
  const costmodel::Value map = to_value(m);
  return to_yaml(map) == to_yaml(to_value(costmodel::read_model(map, "")));
}

// The published parameters, by closed form and over the operators; all that costs is understood.
inline void check_parameters(const Imported& i, double published) {
  CHECK(parameter_count(i.model) == published);
  CHECK(counted_over_operators(i.model) == published);
  CHECK(reads_back(i.model));
  CHECK_FALSE(i.reports("not understood"));
}

}  // namespace hf_models
