#include "costmodel/model/hf_scans.hpp"

#include <fmt/format.h>

#include <string>

#include "costmodel/base/escape.hpp"
#include "costmodel/base/units.hpp"
#include "costmodel/model/hf_hooks.hpp"
#include "costmodel/model/hf_rows.hpp"

namespace costmodel {

namespace {

std::int64_t inner_width(HfTranslation& file, const char* expand = "expand") {
  return file.integer(expand, 2) * file.number("hidden");
}

// A number, or "auto" for a sixteenth of the width (transformers, MambaConfig, JambaConfig).
void put_rank(HfTranslation& file, const char* field) {
  constexpr std::int64_t auto_rank = 16;
  const bool automatic = file.reader_.optional(field) == nullptr || file.reader_.is_auto(field);
  file.put("dt_rank",
           automatic ? ceil_div(file.number("hidden"), auto_rank) : file.integer(field, 0), field);
}

// Heads of a scan that is expand times as wide as the model.
void put_scan(HfTranslation& file) {
  file.read({scan_size_rows, "mamba_d_head"});
  file.put("mamba_head_dim", inner_width(file, "mamba_expand") / file.number("mamba_heads"),
           "mamba_d_head");
}

}  // namespace

void hf_mamba(HfTranslation& file) {
  const std::int64_t inner = inner_width(file);
  if (file.number("heads") == 0) file.put("heads", inner, "intermediate_size");
  put_rank(file, "time_step_rank");
}

void hf_mamba2(HfTranslation& file) {
  const std::int64_t inner = inner_width(file);
  const std::int64_t heads = file.number("heads"), width = file.number("head_dim");
  if (heads * width == inner) return;
  file.refuse(
      "num_heads",
      fmt::format("num_heads {} x head_dim {} is not expand x hidden_size {}", heads, width, inner),
      "change num_heads, head_dim or expand");
}

namespace {

// A letter a layer, or a list of words (layers_block_type, also called layer_types;
// transformers 5.8 has other words for the mixers).
std::string nemotron_pattern(HfTranslation& file, std::string_view& field) {
  for (const char* const name : {"layers_block_type", "layer_types"}) {
    const Value* const list = file.reader_.optional(name);
    if (list == nullptr) continue;
    field = name;
    file.read({"hybrid_override_pattern"});
    std::string letters;
    for (const Value& layer : list->items) {
      const std::string word = read_text(layer, name);
      const bool known = word == "mlp" || word == "moe" || word.ends_with("attention");
      if (!known && word != "mamba") {
        throw ConfigError(layer.mark, fmt::format("{}: {} is not known", name, quote(word)),
                          "one of linear_attention (or mamba), full_attention, moe, mlp");
      }
      letters += word == "mlp"                               ? '-'
                 : word == "moe"                             ? 'E'
                 : word == "mamba" || word.starts_with("li") ? 'M'
                                                             : '*';
    }
    return letters;
  }
  field = "hybrid_override_pattern";
  file.reader_.required(field);
  return *file.reader_.text(field);
}

}  // namespace

// Only another number of layers is put, for read_model to refuse: a pattern of another length may
// be written over the file.
void hf_nemotron(HfTranslation& file) {
  std::string_view field;
  const std::string pattern = nemotron_pattern(file, field);
  file.put("layer_pattern", pattern, field);
  const auto letters = static_cast<std::int64_t>(pattern.size());
  if (const std::int64_t layers = file.integer("num_hidden_layers", letters); layers != letters)
    file.put("layers", layers, "num_hidden_layers");
  if (pattern.find('M') != std::string::npos) {
    file.read(
        {"mamba_heads=mamba_num_heads mamba_head_dim=mamba_head_dim state_size=ssm_state_size "
         "ssm_groups=n_groups conv_kernel=conv_kernel expand mamba_hidden_act chunk_size "
         "!use_bias !mamba_proj_bias !use_conv_bias"});
  }
  if (pattern.find('E') == std::string::npos) return;
  // The router is DeepSeek-V3's, which no field names (transformers, NemotronHTopkRouter).
  file.read(
      {"experts=n_routed_experts top_k=num_experts_per_tok expert_ffn_hidden=moe_intermediate_size "
       "router_score:sigmoid router_bias:true router_scaling=routed_scaling_factor:1.0 "
       "moe_latent_size=moe_latent_size? expert_groups=n_group? "
       "expert_groups_per_token=topk_group?"});
  const char* const shared = "moe_shared_expert_intermediate_size";
  file.put_shared(file.integer("n_shared_experts", 0, 0) *
                      file.integer(shared, file.number("expert_ffn_hidden")),
                  shared, "n_shared_experts");
  file.read({"mtp_layers=num_nextn_predict_layers"});
}

void hf_granite_hybrid(HfTranslation& file) {
  if (file.reader_.text("position_embedding_type").value_or("nope") != "rope")
    file.read({"positions:none"});
  const char* const shared = "shared_intermediate_size";
  const std::int64_t width = file.integer(shared, 1024, 0);
  if (file.integer("num_local_experts", 8, 0) > 0) {
    file.read(
        {"kind:moe experts=num_local_experts:8 top_k=num_experts_per_tok:2 "
         "expert_ffn_hidden=intermediate_size"});
    file.put_shared(width, shared, shared);
  } else {
    file.put("ffn_hidden", width, shared);
    file.read({"num_experts_per_tok"});
  }
  if (file.text("attention_pattern").find('M') == std::string::npos) return;
  put_scan(file);
}

void hf_bamba(HfTranslation& file) {
  const char* const field = "attn_layer_indices";
  std::string letters(static_cast<std::size_t>(file.number("layers")), 'M');
  if (const Value* const list = file.reader_.optional(field)) {
    for (const Value& layer : list->items) {
      letters[static_cast<std::size_t>(
          read_integer(layer, field, {0, file.number("layers") - 1}))] = 'F';
    }
  }
  file.put_pattern(letters, field);
  put_scan(file);
}

// One layer of attn_layer_period has attention, one of expert_layer_period experts.
void hf_jamba(HfTranslation& file) {
  const auto period = file.reader_.integer("attn_layer_period", hf_counts).value_or(8);
  std::string letters(static_cast<std::size_t>(period), 'M');
  const std::int64_t place = file.integer("attn_layer_offset", 4, 0);
  if (place >= period) {
    file.refuse("attn_layer_offset", "attn_layer_offset is not below attn_layer_period",
                "choose one of its layers, from 0");
  }
  letters[static_cast<std::size_t>(place)] = 'F';
  file.put_pattern(letters, "attn_layer_period");
  // With one expert its class has an MLP in its place (transformers, JambaDecoderLayer).
  if (file.integer("num_experts", 16) > 1) {
    file.read(
        {"kind:moe experts=num_experts:16 top_k=num_experts_per_tok:2 "
         "expert_ffn_hidden=intermediate_size moe_every=expert_layer_period:2"});
    file.put("moe_offset", file.integer("expert_layer_offset", 1, 0), "expert_layer_offset");
  } else {
    file.read({"num_experts_per_tok expert_layer_period expert_layer_offset"});
  }
  file.put("mamba_heads", inner_width(file, "mamba_expand"), "mamba_expand");
  put_rank(file, "mamba_dt_rank");
}

// The width of its scan is mamba_d_ssm, or where that is null expand x hidden.
void hf_falcon_h1(HfTranslation& file) {
  constexpr std::int64_t usual = 1024;  // transformers, FalconH1Config
  const std::int64_t inner = file.is_null("mamba_d_ssm") ? inner_width(file, "mamba_expand")
                                                         : file.integer("mamba_d_ssm", usual);
  const bool automatic =
      file.reader_.optional("mamba_d_head") == nullptr || file.reader_.is_auto("mamba_d_head");
  const std::int64_t head = inner / file.number("mamba_heads");
  file.put("mamba_head_dim", automatic ? head : file.integer("mamba_d_head", head), "mamba_d_head");
  file.read({"mamba_expand mamba_d_ssm"});
  const char* const scale = "lm_head_multiplier";
  file.put("logits_scaling",
           1 / file.reader_.number(scale, Dimension::count, 1e-9, 1e9).value_or(1), scale);
  for (const char* const field :
       {"key_multiplier", "attention_in_multiplier", "attention_out_multiplier", "mlp_multipliers",
        "ssm_in_multiplier", "ssm_out_multiplier", "ssm_multipliers"})
    file.reader_.optional(field);
  file.report("the multipliers of its attention, scan and MLP are left out: they cost nothing");
}

// Lightning attention in most layers; attn_type_list has 1 for full attention.
void hf_minimax_m1(HfTranslation& file) {
  hf_rotary_columns(file);
  const Value* const list = file.reader_.optional("attn_type_list");
  if (list == nullptr) return;
  std::string letters;
  for (const Value& layer : list->items)
    letters += read_integer(layer, "attn_type_list", {0, 1}) == 1 ? 'F' : 'L';
  if (!letters.empty()) file.put_pattern(letters, "attn_type_list");
}

// Layers are counted from 1 in full_attn_layers.
void hf_kimi_linear(HfTranslation& file) {
  if (file.flag("mla_use_nope", false)) file.read({"positions:none"});
  const char* const field = "linear_attn_config";
  MapReader inner(file.reader_.required(field), field);
  std::string letters(static_cast<std::size_t>(file.number("layers")), 'K');
  for (const Value& layer : inner.required("full_attn_layers").items) {
    letters[static_cast<std::size_t>(
        read_integer(layer, "full_attn_layers", {1, file.number("layers")}) - 1)] = 'F';
  }
  file.put_pattern(letters, field);
  const auto put = [&](const char* theirs, std::initializer_list<const char*> ours) {
    inner.required(theirs);
    for (const char* const key : ours) file.put(key, *inner.integer(theirs, hf_sizes), field);
  };
  put("num_heads", {"linear_num_key_heads", "linear_num_value_heads"});
  put("head_dim", {"linear_key_head_dim", "linear_value_head_dim"});
  put("short_conv_kernel_size", {"conv_kernel"});
}

void hf_rwkv7(HfTranslation& file) {
  const std::int64_t heads = file.number("hidden") / file.number("head_dim");
  file.put("heads", heads, "head_dim");
  file.put("kv_heads", heads, "head_dim");
}

// An MLP two thirds as wide as its field, times a multiplier, rounded up, where
// block_auto_adjust_ff_dim is on (transformers, Lfm2MLP). Older files list the layers of attention.
void hf_lfm2(HfTranslation& file) {
  const double times =
      file.reader_.number("block_ffn_dim_multiplier", Dimension::count, 1e-6, 1e6).value_or(1);
  const std::int64_t multiple = file.integer("block_multiple_of", 256);
  if (file.flag("block_auto_adjust_ff_dim", true)) {
    const std::int64_t third = file.number("ffn_hidden") * 2 / 3;  // int(2 * intermediate_size / 3)
    const auto wide = static_cast<std::int64_t>(times * static_cast<double>(third));
    file.put("ffn_hidden", ceil_div(wide, multiple) * multiple, "block_ff_dim");
  }
  const char* const field = "full_attn_idxs";
  const Value* const list = file.reader_.optional(field);
  if (list == nullptr || file.reader_.optional("layer_types") != nullptr) return;
  std::string letters(static_cast<std::size_t>(file.number("layers")), 'V');
  for (const Value& layer : list->items) {
    letters[static_cast<std::size_t>(read_integer(layer, field, {0, file.number("layers") - 1}))] =
        'F';
  }
  file.put_pattern(letters, field);
}

}  // namespace costmodel
