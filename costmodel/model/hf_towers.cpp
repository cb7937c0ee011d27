#include "costmodel/model/hf_towers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <sstream>
#include <string_view>

#include "costmodel/base/escape.hpp"
#include "costmodel/config/synonyms.hpp"
#include "costmodel/model/hf_translation.hpp"
#include "costmodel/model/tower.hpp"

namespace costmodel {

namespace {

// A tower's layers by rows, as a family has them (hf_translation.hpp), and its steps, a comma
// between them. `files` are the model_type of files that have it, `types` that of its own map; a
// star: any. In steps {h} are the layers' columns, {o} the language model's, {m} the patches that
// are merged, {hm} their columns, {n} the patches of an image, {p} those of a token of the language
// model, {bias} whether the projector has biases; other names are fields of the tower's map.
struct HfTower {
  std::string_view files, types, field;
  std::array<std::string_view, 2> rows;
  std::string_view stem, projector, branch;
};

constexpr std::string_view
    // Of CLIP and SigLIP: LayerNorm, biases everywhere, positions in a table.
    clip_rows =
        "kind:gpt layers=num_hidden_layers:12 hidden=hidden_size:768 heads=num_attention_heads:12 "
        "ffn_hidden=intermediate_size:3072 activation=hidden_act:gelu normalization:layernorm "
        "linear_bias:true gated_mlp:false positions:none patch=patch_size:32 "
        "image_size=image_size:224 channels=num_channels:3",
    clip_rest =
        "projection_dim vocab_size num_key_value_heads head_dim vision_use_head attention_dropout "
        "dropout hidden_dropout_prob drop_path_rate initializer_factor",
    // Of Qwen2-VL and later: patches of two frames, rotary positions, images of any size.
    qwen_rows =
        "kind:gpt layers=depth:32 heads=num_heads:16 normalization:layernorm linear_bias:true "
        "gated_mlp:false positions:rotary patch=patch_size:14 frames=temporal_patch_size:2 "
        "channels=in_channels|in_chans:3 image_size:448 spatial_merge_size spatial_patch_size "
        "out_hidden_size tokens_per_second hidden_act activation:gelu",
    pixtral_rows =
        "kind:llama layers=num_hidden_layers:24 hidden=hidden_size:1024 "
        "heads=num_attention_heads:16 ffn_hidden=intermediate_size:4096 "
        "activation=hidden_act:gelu normalization:rmsnorm linear_bias:false gated_mlp:true "
        "positions:rotary patch=patch_size:16 image_size=image_size:1024 channels=num_channels:3 "
        "rope_theta rope_parameters",
    intern_rows =
        "kind:gpt layers=num_hidden_layers:24 hidden=hidden_size:1024 heads=num_attention_heads:16 "
        "ffn_hidden=intermediate_size:4096 activation=hidden_act:gelu normalization:layernorm "
        "linear_bias:true qkv_bias=qkv_bias|attention_bias:true gated_mlp:false positions:none "
        "patch=patch_size:14 image_size=image_size:448 channels=num_channels:3 layer_vectors:2";
constexpr std::string_view qwen3_rows =
    "layers=depth:27 hidden=hidden_size:1152 ffn_hidden=intermediate_size:4304 "
    "patch=patch_size:16";

constexpr HfTower towers[] = {
    {"qwen2_vl",
     "*",
     "vision_config",
     {qwen_rows, "hidden=embed_dim:1280 ffn_hidden=intermediate_size:5120 mlp_ratio hidden_size"},
     "linear {h}",
     "layernorm, merge {m}, linear {hm} bias, gelu, linear {o} bias"},
    {"qwen2_5_vl",
     "*",
     "vision_config",
     {qwen_rows,
      "hidden=hidden_size:1280 ffn_hidden=intermediate_size:3420 gated_mlp:true activation:silu "
      "normalization:rmsnorm"},
     "linear {h}",
     "rmsnorm, merge {m}, linear {hm} bias, gelu, linear {o} bias"},
    {"qwen3_vl qwen3_vl_moe",
     "*",
     "vision_config",
     {qwen_rows, qwen3_rows},
     "linear {h} bias, positions {num_position_embeddings:2304}",
     "layernorm, merge {m}, linear {hm} bias, gelu, linear {o} bias",
     "merge {m}, layernorm, linear {hm} bias, gelu, linear {o} bias"},
    {"qwen3_5 qwen3_5_moe",
     "*",
     "vision_config",
     {qwen_rows, qwen3_rows},
     "linear {h} bias, positions {num_position_embeddings:2304}",
     "layernorm, merge {m}, linear {hm} bias, gelu, linear {o} bias"},
    // The class token is left out of the layer's result that the projector reads.
    {"llava llava_next",
     "clip_vision_model",
     "vision_config",
     {clip_rows, clip_rest},
     "linear {h}, tokens 1, positions {n+1}, layernorm",
     "layernorm, drop 1, linear {o}{bias}, gelu, linear {o}{bias}"},
    {"llava pixtral",
     "pixtral",
     "vision_config",
     {pixtral_rows, clip_rest},
     "linear {h}, rmsnorm",
     "linear {o}{bias}, gelu, linear {o}{bias}"},
    {"mistral3",
     "pixtral",
     "vision_config",
     {pixtral_rows, clip_rest},
     "linear {h}, rmsnorm",
     "rmsnorm, merge {m}, linear {h}, linear {o}{bias:false}, gelu, linear {o}{bias:false}"},
    {"gemma3",
     "*",
     "vision_config",
     {clip_rows,
      "projection_dim vision_use_head attention_dropout num_channels "
      "layers=num_hidden_layers:27 hidden=hidden_size:1152 heads=num_attention_heads:16 "
      "ffn_hidden=intermediate_size:4304 patch=patch_size:14 image_size=image_size:896"},
     "linear {h} bias, positions {n}",
     "layernorm, pool {p}, rmsnorm, linear {o}"},
    {"llama4",
     "*",
     "vision_config",
     {clip_rows,
      "layers=num_hidden_layers:34 hidden=hidden_size:768 heads=num_attention_heads:16 "
      "ffn_hidden=intermediate_size:5632 image_size=image_size:448 patch=patch_size:14 "
      "attention_dropout multi_modal_projector_bias pixel_shuffle_ratio projector_dropout "
      "projector_input_dim projector_output_dim vision_output_dim rope_theta "
      "vision_feature_layer vision_feature_select_strategy vision_feature_select_strategy"},
     "linear {h}, tokens 1, positions {n+1}, layernorm",
     "layernorm, drop 1, merge {m}, linear {projector_input_dim:4096}, gelu, linear "
     "{projector_output_dim:4096}, gelu, linear {o}"},
    {"internvl internvl_chat",
     "*",
     "vision_config",
     {intern_rows,
      "attention_dropout dropout drop_path_rate qk_normalization use_qk_norm norm_type "
      "use_flash_attn use_mask_token use_mean_pooling use_absolute_position_embeddings "
      "layer_scale_init_value projection_dropout hidden_dropout_prob num_key_value_heads "
      "initializer_factor"},
     "linear {h} bias, tokens 1, positions {n+1}",
     "drop 1, merge {m}, layernorm, linear {o} bias, gelu, linear {o} bias"},
    {"kimi_vl",
     "*",
     "vision_config",
     {clip_rows,
      "layers=num_hidden_layers:27 hidden=hidden_size:1152 heads=num_attention_heads:16 "
      "ffn_hidden=intermediate_size:4304 patch=patch_size:14 positions:rotary image_size:896 "
      "merge_kernel_size"},
     "linear {h} bias, positions {init_pos_emb_height:64*init_pos_emb_width:64}",
     "layernorm, layernorm, merge {m}, linear {hm} bias, gelu, linear {o} bias"},
    // The layers' MLP is as wide as the result; intermediate_size is the projector's.
    {"glm4v glm4v_moe",
     "*",
     "vision_config",
     {"kind:llama layers=depth:24 hidden=hidden_size:1536 heads=num_heads:12 "
      "ffn_hidden=out_hidden_size:4096 activation=hidden_act:silu normalization:rmsnorm "
      "linear_bias:false qkv_bias=attention_bias:false gated_mlp:true positions:rotary "
      "patch=patch_size:14 frames=temporal_patch_size:2 channels=in_channels:3 "
      "image_size=image_size:336",
      "spatial_merge_size attention_dropout hidden_dropout_prob intermediate_size num_channels"},
     "linear {h} bias, rmsnorm, positions {n}",
     "rmsnorm, merge {m}, linear {out_hidden_size:4096} bias, linear {out_hidden_size:4096}, "
     "layernorm, gelu, gated {intermediate_size:13696}"},
    // Whisper's encoder, whose keys have no bias, over 30 s.
    {"qwen2_audio",
     "*",
     "audio_config",
     {"kind:gpt layers=encoder_layers:32 hidden=d_model:1280 heads=encoder_attention_heads:20 "
      "ffn_hidden=encoder_ffn_dim:5120 activation=activation_function:gelu "
      "normalization:layernorm linear_bias:true gated_mlp:false positions:none "
      "mel_bins=num_mel_bins:128 seconds:30 key_bias:false",
      "dropout attention_dropout activation_dropout encoder_layerdrop num_hidden_layers "
      "scale_embedding max_source_positions"},
     "conv {h} 3 1, gelu, conv {h} 3 2, gelu, positions {max_source_positions:1500}",
     "pool 2, layernorm, linear {o} bias"},
};

const Value* map_in(const Value& file, std::string_view key) {
  const Value* const found = file.find(key);
  return found != nullptr && found->is_map() ? found : nullptr;
}

std::string type_in(const Value& map) {
  const Value* const type = map.find("model_type");
  return type != nullptr && type->is_scalar() ? type->text : "";
}

const HfTower* find_tower(const Value& file, const Value& own, std::string_view field) {
  const std::string outer = type_in(file), inner = type_in(own);
  for (const HfTower& row : towers) {
    if (row.field != field || !has_word(row.files, outer)) continue;
    if (row.types == "*" || has_word(row.types, inner)) return &row;
  }
  return nullptr;
}

// A list of equal sizes is one of them ([14, 14] of InternVL's files).
Value with_plain_sides(Value map) {
  for (auto& entry : map.entries) {
    const bool side = entry.key == "image_size" || entry.key == "patch_size" ||
                      entry.key == "merge_kernel_size" || entry.key == "temporal_patch_size";
    if (side && !entry.value.items.empty()) entry.value = Value(entry.value.items.front());
  }
  return map;
}

// The sizes that steps name.
class StepSizes {
 public:
  StepSizes(const Value& file, const Value& own, const HfTranslation& tower, std::int64_t hidden)
      : file_(file), own_(own) {
    const std::int64_t h = tower.number("hidden"), merge = merged_side();
    const std::int64_t patch = std::max<std::int64_t>(1, tower.number("patch"));
    const std::int64_t side = tower.number("image_size") / patch;
    const std::int64_t patches = side * side;
    known_ = {
        {"h", h},
        {"o", hidden},
        {"m", merge * merge},
        {"hm", h * merge * merge},
        {"n", patches},
        {"n+1", patches + 1},
        {"p", std::max<std::int64_t>(1, patches / count_in(file, "mm_tokens_per_image", 256))}};
  }

  // The steps of a text, in a list.
  Value list(std::string_view text) const {
    Value steps;
    steps.kind = Value::Kind::sequence;
    std::istringstream in{std::string(text)};
    for (std::string step; std::getline(in >> std::ws, step, ',');)
      steps.items.push_back(scalar_value(filled(step), own_.mark));
    return steps;
  }

 private:
  static std::int64_t count_in(const Value& map, std::string_view field, std::int64_t usual) {
    MapReader reader(map, "config.json");
    return reader.integer(field, hf_sizes).value_or(usual);
  }

  // Patches along a side that become one token.
  std::int64_t merged_side() const {
    for (const Value* const map : {&own_, &file_}) {
      MapReader reader(*map, "config.json");
      for (const char* const field : {"spatial_merge_size", "merge_kernel_size"})
        if (const auto side = reader.integer(field, {1, 64})) return *side;
      for (const char* const field : {"pixel_shuffle_ratio", "downsample_ratio"}) {
        if (const auto part = reader.number(field, Dimension::count, 1.0 / 64, 1))
          return std::lround(1 / *part);
      }
    }
    return 2;
  }

  std::string filled(std::string step) const {
    for (std::size_t open = 0; (open = step.find('{')) != step.npos;) {
      const std::size_t close = step.find('}', open);
      step.replace(open, close + 1 - open, value_of(step.substr(open + 1, close - open - 1)));
    }
    return step;
  }

  // Of a name, or of fields with what the class takes in place of each, a star between factors.
  std::string value_of(const std::string& name) const {
    if (name.starts_with("bias")) {
      MapReader reader(file_, "config.json");
      const bool usual = name == "bias";  // else bias:false
      return reader.boolean("multimodal_projector_bias").value_or(usual) ? " bias" : "";
    }
    if (const auto found = known_.find(name); found != known_.end())
      return fmt::format("{}", found->second);
    std::int64_t product = 1;
    std::istringstream factors(name);
    for (std::string factor; std::getline(factors, factor, '*');) {
      const std::size_t colon = factor.find(':');
      const IntegerRange side{1, 1'000'000};
      MapReader reader(own_, "config.json");
      product *= reader.integer(factor.substr(0, colon), side)
                     .value_or(std::stoll(factor.substr(colon + 1)));
    }
    return fmt::format("{}", product);
  }

  const Value &file_, &own_;
  std::map<std::string, std::int64_t, std::less<>> known_;
};

// Fields that name the layers that attend to all tokens, and which have projectors of their own.
void put_lists(const Value& own, std::string_view branch, HfTranslation& tower, Value& keys) {
  const Value* const full = tower.reader_.optional("fullatt_block_indexes");
  const auto put = [&](const char* key, std::int64_t value) {
    keys.set(key, scalar_value(fmt::format("{}", value), own.mark));
  };
  if (const auto pixels = tower.reader_.integer("window_size", hf_sizes); pixels && full) {
    const std::int64_t side =
        std::max<std::int64_t>(1, *pixels / std::max<std::int64_t>(1, tower.number("patch")));
    put("window", side * side);
    put("full_layers", static_cast<std::int64_t>(full->items.size()));
  }
  if (branch.empty()) return;
  constexpr std::int64_t usual = 3;  // transformers, Qwen3VLVisionConfig
  const Value* const list = tower.reader_.optional("deepstack_visual_indexes");
  put("branches", list == nullptr ? usual : static_cast<std::int64_t>(list->items.size()));
}

Value tower_keys(const Value& file, const Value& written, const HfTower& row, std::int64_t hidden,
                 std::vector<std::string>& omitted) {
  const Value own = with_plain_sides(written);
  HfTranslation tower(own, type_in(own));
  tower.read({row.rows.begin(), row.rows.end()});
  const StepSizes sizes(file, own, tower, hidden);
  Value lists;
  put_lists(own, row.branch, tower, lists);
  for (const auto text : {row.stem, row.projector, row.branch}) {
    for (std::size_t at = 0; (at = text.find('{', at)) != text.npos; ++at) {
      const std::size_t end = text.find_first_of(":}", at);
      tower.reader_.optional(text.substr(at + 1, end - at - 1));  // is known
    }
  }
  for (const char* const known : {"init_pos_emb_width", "output_dim"})
    tower.reader_.optional(known);
  const HfModel model = tower.take();
  for (const std::string& field : model.unread) {
    omitted.push_back(
        fmt::format("{} of {} is not understood here and changes nothing", field, row.field));
  }
  Value keys = model.keys;
  for (const char* const rest : {"source", "context_length", "norm_epsilon", "dropout"})
    keys.erase(rest);
  keys.mark = own.mark;
  keys.set("stem", sizes.list(row.stem));
  keys.set("projector", sizes.list(row.projector));
  for (const auto& entry : lists.entries) keys.set(entry.key, entry.value);
  const Value* const branches = keys.find("branches");
  if (branches != nullptr && branches->text == "0") {
    keys.erase("branches");
  } else if (!row.branch.empty()) {
    keys.set("branch", sizes.list(row.branch));
  }
  return keys;
}

// What classes take for the language model where a file of a multimodal one has no field
// (transformers 4.57: LlamaConfig, MistralConfig, Qwen2Config).
struct UsualText {
  std::string_view type, rows;
};
constexpr std::array<UsualText, 3> usual_texts{
    {{"llama",
      "hidden_size=4096 intermediate_size=11008 num_hidden_layers=32 num_attention_heads=32"},
     {"mistral",
      "hidden_size=4096 intermediate_size=14336 num_hidden_layers=32 num_attention_heads=32 "
      "num_key_value_heads=8"},
     {"qwen2",
      "hidden_size=4096 intermediate_size=22016 num_hidden_layers=32 num_attention_heads=32 "
      "num_key_value_heads=32"}}};

void put_usual_text(Value& text) {
  const auto row = std::ranges::find(usual_texts, type_in(text), &UsualText::type);
  if (row == usual_texts.end()) return;
  std::istringstream words{std::string(row->rows)};
  for (std::string word; words >> word;) {
    const std::size_t equals = word.find('=');
    const std::string field = word.substr(0, equals);
    if (text.find(field) == nullptr)
      text.set(field, scalar_value(word.substr(equals + 1), text.mark));
  }
}

// Parts that are neither the language model nor a tower: what speaks, decodes sound or joins parts.
void omit_other_parts(const Value& file, std::vector<std::string>& omitted) {
  if (hf_text_config(file) == nullptr) return;
  constexpr std::array<std::string_view, 8> others{
      "text_config",   "llm_config",   "language_config",     "thinker_config",
      "vision_config", "audio_config", "quantization_config", "generation_config"};
  for (const Value::Entry& entry : file.entries) {
    const bool part = entry.value.is_map() && entry.key.ends_with("_config");
    if (part && std::ranges::find(others, entry.key) == others.end())
      omitted.push_back(entry.key + " is left out: a part of the model that is not known here");
  }
}

}  // namespace

const Value* hf_text_config(const Value& file) {
  for (const char* const name : {"text_config", "llm_config", "language_config"})  // the others
    if (const Value* const text = map_in(file, name)) return text;  // InternVL's, DeepSeek-VL2's
  const Value* const thinker = map_in(file, "thinker_config");      // Qwen's Omni
  return thinker == nullptr ? nullptr : hf_text_config(*thinker);
}

Value hf_language_model(const Value& file) {
  const Value* const text = hf_text_config(file);
  if (text == nullptr) {
    Value model = file;
    for (const HfTower& row : towers)
      if (map_in(model, row.field) != nullptr) model.erase(row.field);
    return model;
  }
  Value model = *text;
  for (const char* key : {"model_type", "architectures", "tie_word_embeddings"}) {
    const Value* const outer = file.find(key);
    const Value* const inner = model.find(key);
    const bool absent = inner == nullptr || inner->kind == Value::Kind::null;
    if (absent && outer != nullptr) model.set(key, *outer);
  }
  if (map_in(file, "vision_config") != nullptr || map_in(file, "audio_config") != nullptr)
    put_usual_text(model);
  return model;
}

void put_hf_towers(const Value& file, Value& keys, std::vector<std::string>& omitted) {
  for (std::size_t i = 0; i < tower_names.size(); ++i) {
    const std::string name(tower_names[i]), field = name + "_config";
    const Value* const own = map_in(file, field);
    if (own == nullptr || keys.find(name) != nullptr) continue;
    const HfTower* const row = find_tower(file, *own, field);
    const Value* const hidden = keys.find("hidden");
    if (row == nullptr || hidden == nullptr) {
      omitted.push_back(fmt::format(
          "{} of model_type {} is not known in a file of model_type {}: its tower is left out",
          field, quote(type_in(*own)), quote(type_in(file))));
      continue;
    }
    keys.set(name,
             tower_keys(file, *own, *row, read_integer(*hidden, "hidden", hf_sizes), omitted));
  }
  omit_other_parts(file, omitted);
  const Value* const tiles = file.find("image_grid_pinpoints");
  if (tiles != nullptr && keys.find("vision") != nullptr) {
    omitted.emplace_back(
        "image_grid_pinpoints: an image is counted as one tile; of large ones the class makes "
        "several and an overview, each with as many tokens (training.images multiplies them)");
  }
  if (const Value* const thinker = map_in(file, "thinker_config"))
    put_hf_towers(*thinker, keys, omitted);
}

}  // namespace costmodel
