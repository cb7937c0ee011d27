#include "costmodel/model/hf_config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <sstream>
#include <string_view>

#include "costmodel/base/escape.hpp"
#include "costmodel/config/map_reader.hpp"
#include "costmodel/config/synonyms.hpp"
#include "costmodel/model/hf_families.hpp"
#include "costmodel/model/hf_rows.hpp"
#include "costmodel/model/hf_towers.hpp"
#include "costmodel/model/model_keys.hpp"

namespace costmodel {

namespace {

// The scalar that names the family: model_type, else the first of `architectures`.
const Value* type_of(const Value& map) {
  const Value* const type = map.find("model_type");
  if (type != nullptr && type->kind != Value::Kind::null) return type;
  const Value* const list = map.find("architectures");
  return list != nullptr && !list->items.empty() ? &list->items.front() : nullptr;
}

// Families that no list of blocks describes, and why.
struct Refused {
  std::string_view names, why;
};
constexpr std::array<Refused, 7> refused{
    {{"gemma3n gemma3n_text",
      "each layer has a table of embeddings and several streams of residuals (AltUp), and the last "
      "ones use keys and values of others"},
     {"longcat_flash LongcatFlashForCausalLM",
      "a layer has two attentions and two MLPs, and experts of which some compute nothing"},
     {"deepseek_v4 DeepseekV4ForCausalLM",
      "residuals are several streams that each layer mixes, and keys are compressed over tokens"},
     {"step3_text Step3TextForCausalLM", "queries of full attention come from a latent vector"},
     {"zamba2 zamba Zamba2ForCausalLM ZambaForCausalLM",
      "layers of attention share their weights and read two vectors of a token"},
     {"hunyuan HunYuanForCausalLM", "layers use the keys and values of the one before (use_cla)"},
     {"nemotron-nas deci DeciLMForCausalLM", "every layer has other sizes (block_configs)"}}};

// `partial`: an unknown model_type is read as a llama.
HfFamily find_family(const Value& map, bool partial) {
  const Value* type = type_of(map);
  if (type == nullptr)
    throw ConfigError(map.mark, "config.json lacks the key 'model_type'", "add \"model_type\"");
  const std::string word = read_text(*type, "model_type");
  std::vector<std::string> known;
  for (const HfFamily& family : hf_families()) {
    if (word == family.model_type || has_word(family.architectures, word)) return family;
    if (known.empty() || known.back() != family.model_type) known.emplace_back(family.model_type);
  }
  if (partial) return hf_guess(map, type->text);
  for (const Refused& row : refused) {
    if (!has_word(row.names, word)) continue;
    throw ConfigError(type->mark,
                      fmt::format("model_type {} is not modelled: {}", quote(word), row.why),
                      "import hf --partial reads the fields of a llama from it");
  }
  throw ConfigError(
      type->mark, fmt::format("model_type {} is not known", quote(word)),
      known_names(word, known) + "; import hf --partial reads the fields of a llama from it");
}

}  // namespace

bool is_hf_config(const Value& map) {
  if (!map.is_map() || map.find("kind") != nullptr) return false;
  return map.find("model_type") != nullptr || map.find("architectures") != nullptr ||
         hf_text_config(map) != nullptr;
}

namespace {

// Of keys of a model, these are fields of many a file whose class does not read them.
// top_k is of generation there.
constexpr std::array<std::string_view, 3> shared_names{"head_dim", "sliding_window", "top_k"};

// What a family without it cannot leave out: experts, or layers that differ (transformers 5).
void refuse_unread(const HfModel& model, const Value& map) {
  const Value* const kind = model.keys.find("kind");
  const bool sparse = model.keys.find("experts") != nullptr || kind->text == "hybrid";
  for (const std::string& key : model.unread) {
    const Value& field = *map.find(key);
    const bool layers = key == "per_layer_config" && field.kind != Value::Kind::null;
    const bool experts = !sparse && has_word(expert_fields, key) && field.text != "0" &&
                         field.text != "1" && field.kind != Value::Kind::null;
    if (!layers && !experts) continue;
    throw ConfigError(field.mark,
                      fmt::format("{}: model_type {} is read {}", key, quote(type_of(map)->text),
                                  layers ? "with layers that are equal" : "without experts"),
                      "write a model file of your own: docs/own-model.md");
  }
}

// A head of labels is in place of the vocabulary's (transformers, ...ForSequenceClassification).
void name_head(const Value& map, HfModel& model) {
  const Value* const list = map.find("architectures");
  const bool none = list == nullptr || list->items.empty();
  if (none || model.keys.find("pooler") != nullptr) return;  // BERT's heads are read
  const std::string& word = list->items.front().text;
  if (!word.ends_with("Classification") && !word.ends_with("RewardModel")) return;
  model.omitted.push_back(
      fmt::format("the head of {} is left out: the output projection over the vocabulary is "
                  "counted and priced in its place",
                  shortened(word)));
}

// The model of a file, in which keys of a model that stand among its fields win.
HfModel read_file(const Value& map, bool partial = false) {
  const HfFamily family = find_family(map, partial);
  HfModel model = family.read(map);
  name_head(map, model);
  if (family.architectures.empty()) {
    model.omitted.push_back(fmt::format(
        "model_type {} is not known: its fields are read as those of {} of the llama family",
        quote(family.model_type), model.keys.find("experts") != nullptr ? "a mixture" : "a model"));
  }
  std::erase_if(model.unread, [&](const std::string& key) {
    const bool wins = is_model_key(key) && std::ranges::count(shared_names, key) == 0;
    if (wins) model.keys.set(key, *map.find(key));
    return wins;
  });
  return model;
}

// Of a map of rotary positions, with those of each kind of layer (transformers 4.57 and 5.0,
// modeling_rope_utils.py; DeepSeek's mscale, and the older `type`).
constexpr std::string_view rotary_fields =
    "rope_type type factor rope_theta partial_rotary_factor original_max_position_embeddings "
    "attention_factor beta_fast beta_slow short_factor long_factor low_freq_factor "
    "high_freq_factor mscale mscale_all_dim truncate full_attention sliding_attention";

// What no key describes, and fields that are not understood.
std::vector<std::string> sentences_of(const HfModel& model) {
  std::vector<std::string> all = model.omitted;
  for (const std::string& key : model.unread)
    all.push_back(key + " of config.json is not understood here and changes nothing");
  return all;
}

void require_rotary_fields(const Value& fields) {
  for (const char* name : {"rope_scaling", "rope_parameters"}) {
    const Value* const map = fields.find(name);
    if (map == nullptr || !map->is_map()) continue;
    MapReader reader(*map, name);
    std::istringstream known{std::string(rotary_fields)};
    for (std::string field; known >> field;) reader.optional(field);
    reader.finish();
  }
}

}  // namespace

Value from_hf_config(const Value& file, const Value& over, const std::string& name,
                     std::vector<std::string>* omitted) {
  Value fields = over;
  if (const Value* const text = hf_text_config(over);
      text != nullptr && hf_text_config(file) != nullptr) {
    fields = merged(over, *text);
    fields.erase("text_config");
  }
  Value keys = fields;
  std::erase_if(keys.entries, [](const auto& entry) { return !is_model_key(entry.key); });
  std::erase_if(fields.entries, [](const auto& entry) { return is_model_key(entry.key); });
  const Value map = merged(hf_language_model(file), fields);
  HfModel model = read_file(map);
  put_hf_towers(file, model.keys, model.omitted);
  MapReader reader(fields, "model " + quote(name));
  for (const std::string_view key : model_key_names()) reader.optional(key);
  for (const auto& entry : map.entries)
    if (std::ranges::count(model.unread, entry.key) == 0) reader.optional(entry.key);
  reader.finish();
  refuse_unread(model, map);
  require_rotary_fields(fields);
  if (omitted != nullptr) {
    *omitted = sentences_of(model);
    for (const auto& entry : keys.entries) {  // what the advice is followed of
      const std::string adds = fmt::format("(model.{}=", entry.key);
      std::erase_if(*omitted, [&](const std::string& sentence) {
        return sentence.find(adds) != std::string::npos;
      });
    }
  }
  return merged(model.keys, keys);
}

Value from_hf_config(const Value& file) {
  std::vector<std::string> omitted;
  return from_hf_config(file, omitted);
}

Value from_hf_config(const Value& file, std::vector<std::string>& omitted, bool partial) {
  const Value map = hf_language_model(file);
  HfModel model = read_file(map, partial);
  refuse_unread(model, map);
  put_hf_towers(file, model.keys, model.omitted);
  omitted = sentences_of(model);
  return model.keys;
}

}  // namespace costmodel
