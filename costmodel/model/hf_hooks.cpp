#include "costmodel/model/hf_hooks.hpp"

#include <algorithm>
#include <cmath>

#include "costmodel/base/escape.hpp"
#include "costmodel/model/hf_rows.hpp"
#include "costmodel/model/model_spec.hpp"

namespace costmodel {

namespace {

// Layers of mlp_only_layers are dense; Shardplan has only the first ones so. `some`: a file may
// list layers at all.
void dense_layers(HfTranslation& file, bool some) {
  const Value* const list = file.reader_.optional("mlp_only_layers");
  const std::int64_t step = file.integer("decoder_sparse_step", 1);
  const bool listed = list != nullptr && !list->items.empty();
  if ((step > 1 && !some) || (listed && (step > 1 || !some))) {
    file.refuse(listed ? "mlp_only_layers" : "decoder_sparse_step",
                listed ? "mlp_only_layers: not every layer has experts"
                       : "decoder_sparse_step: not every layer has experts",
                "set moe_every or first_dense_layers in a model file of your own");
  }
  if (step > 1) {  // the last of so many layers has experts
    file.put("moe_every", step, "decoder_sparse_step");
    file.put("moe_offset", step - 1, "decoder_sparse_step");
  }
  std::int64_t dense = 0;
  if (list != nullptr) {
    for (const Value& layer : list->items) {
      if (read_integer(layer, "mlp_only_layers", {0, 100'000}) != dense++) {
        throw ConfigError(layer.mark, "mlp_only_layers are not the first layers",
                          "list 0, 1, ... in order, or write a model file of your own");
      }
    }
  }
  file.put("first_dense_layers", dense, "mlp_only_layers");
}

}  // namespace

// Qwen's window holds when it is switched on, from layer max_window_layers on, or as layer_types
// says (transformers, Qwen2Config).
void hf_qwen(HfTranslation& file) {
  if (!file.flag("use_sliding_window", false)) return file.read({"sliding_window layer_types"});
  file.read({"sliding_window=sliding_window?"});
  if (file.number("sliding_window") == 0) return;
  const std::int64_t layers = file.number("layers");
  constexpr std::int64_t usual = 28;  // transformers, Qwen2Config
  const std::int64_t full = std::min(layers, file.integer("max_window_layers", usual, 0));
  std::string letters(static_cast<std::size_t>(full), 'F');
  letters.append(static_cast<std::size_t>(layers - full), 'S');
  file.read({"attention_pattern=layer_types:" + letters});
}

// Small ones have full attention, and name no sizes of a latent one.
void hf_deepseek_v2(HfTranslation& file) {
  if (file.flag("use_mla", true)) {
    for (const char* const key : {"kv_heads", "head_dim"}) file.drop(key);
    file.read({latent_rows, "q_lora_rank=q_lora_rank:1536"});
  } else {
    file.read({"q_lora_rank kv_lora_rank qk_nope_head_dim qk_rope_head_dim v_head_dim"});
  }
}

void hf_qwen_moe(HfTranslation& file) {
  dense_layers(file, true);
  hf_qwen(file);
}

// A shared expert, as wide as several, with a gate.
void hf_shared_expert(HfTranslation& file) {
  const char* const field = "shared_expert_intermediate_size";
  const std::int64_t width = file.integer(field, 0, 0);
  file.put_shared(width, field, field);
  file.put("shared_expert_gate", width > 0, field);
}

void hf_qwen2_moe(HfTranslation& file) {
  hf_shared_expert(file);
  hf_qwen_moe(file);
}

// Every layer has experts.
void hf_qwen_next(HfTranslation& file) {
  hf_shared_expert(file);
  dense_layers(file, false);
  file.drop("first_dense_layers");
  file.report(
      "multi-token prediction, whose layer the published weights have and config.json does not "
      "name, is left out (model.mtp_layers=1 adds it)");
}

// Of moe_every layers the last has experts, to the model's end.
void hf_ernie(HfTranslation& file) {
  file.put("moe_offset", file.number("moe_every") - 1, "moe_layer_interval");
  const std::int64_t last = file.integer("moe_layer_end_index", -1, -1);
  if (last >= 0 && last + 1 < file.number("layers")) {
    file.refuse("moe_layer_end_index", "moe_layer_end_index: the last layers have no experts",
                "leave it out: experts to the last layer are modelled");
  }
}

// The part of a head that is rotated, as so many of its columns.
void hf_rotary_columns(HfTranslation& file) {
  const std::int64_t head = file.number("head_dim"), rotated = file.integer("rotary_dim", head);
  if (rotated != head) {
    file.put("rotary_percent", static_cast<double>(rotated) / static_cast<double>(head),
             "rotary_dim");
  }
}

void hf_smollm3(HfTranslation& file) {
  hf_qwen(file);
  file.report(
      "each fourth layer has no rotary positions: it is priced with them, and an export has them "
      "in all layers");
}

void hf_phi(HfTranslation& file) { file.report("the bias of the head is left out"); }

void hf_gptj(HfTranslation& file) {
  hf_rotary_columns(file);
  hf_phi(file);
  file.report("the bias of the attention output, which the class has not, follows the MLP's");
}

// Each head of the larger ones has norms of its own for queries and keys.
void hf_stablelm(HfTranslation& file) {
  if (file.flag("use_parallel_residual", false)) file.read({parallel_rows});
  if (file.flag("qk_layernorm", false)) file.read({across_heads_rows});
}

// "dense" for the first layers, "sparse" for the others; an indexer that is "shared" chooses for
// further layers.
void hf_layer_kinds(HfTranslation& file) {
  const char* const field = "mlp_layer_types";
  if (const Value* const list = file.reader_.optional(field)) {
    std::size_t dense = 0, sparse = 0;
    for (const Value& layer : list->items) {
      const bool experts = read_text(layer, field) == "sparse";
      if (!experts && sparse > 0) {
        throw ConfigError(layer.mark, "mlp_layer_types: a dense layer follows one of experts",
                          "write a model file of your own: its first layers may be dense");
      }
      (experts ? sparse : dense) += 1;
    }
    file.put("first_dense_layers", dense, field);
  }
  file.read({"index_skip_topk_offset index_topk_freq"});
  const std::string pattern = file.reader_.text("index_topk_pattern").value_or("");
  const Value* const shared = file.reader_.optional("indexer_types");
  const bool some = shared != nullptr && std::ranges::any_of(shared->items, [](const Value& layer) {
                      return layer.text == "shared";
                    });
  if (some || pattern.find('S') != std::string::npos || file.integer("index_topk_freq", 1, 0) > 1)
    file.report("every layer is counted with an indexer of its own");
}

// Windows as layer_types has them, or letters (L a window, G all tokens) or a distance; null: none.
void hf_exaone(HfTranslation& file) {
  const char* const field = "sliding_window_pattern";
  if (file.reader_.optional("sliding_window") == nullptr) return file.read({field, "layer_types"});
  const std::string word = file.reader_.text(field).value_or("4");
  std::string letters;
  if (word.find_first_not_of("LG") == std::string::npos) {
    for (const char letter : word) letters += letter == 'L' ? 'S' : 'F';
  } else {
    const std::int64_t every = file.integer(field, 4);
    letters = std::string(static_cast<std::size_t>(every - 1), 'S') + 'F';
  }
  file.read({"sliding_window=sliding_window?", "attention_pattern=layer_types:" + letters});
}

void hf_exaone_moe(HfTranslation& file) {
  hf_exaone(file);
  hf_layer_kinds(file);
}

// Embeddings are multiplied where muP is on.
void hf_afmoe(HfTranslation& file) {
  if (file.flag("mup_enabled", false)) {
    file.put("embedding_multiplier", std::sqrt(static_cast<double>(file.number("hidden"))),
             "mup_enabled");
  }
}

void hf_granite_shared(HfTranslation& file) {
  const char* const field = "shared_intermediate_size";
  file.put_shared(file.integer(field, 0, 0), field, field);
}

void hf_mllama(HfTranslation& file) {
  const Value* const cross = file.reader_.optional("cross_attention_layers");
  if (cross == nullptr || cross->items.empty()) return;
  file.report(
      fmt::format("{} layers attend to the image: they are counted as attending to the text",
                  cross->items.size()));
}

void hf_apertus(HfTranslation& file) {
  file.report("its activation, xIELU, is priced as SiLU, and its two numbers a layer are left out");
}

// 13B has no rotary positions, and names no number of them.
void hf_baichuan(HfTranslation& file) {
  if (file.reader_.optional("max_position_embeddings") == nullptr)
    file.read({"positions:alibi rope_scaling"});
}

// Branches are scaled by depth, logits by the width over that of a base (MiniCPM, section 3.1).
void hf_minicpm(HfTranslation& file) {
  const auto number = [&](const char* field, double usual) {
    return file.reader_.number(field, Dimension::count, 1e-9, 1e9).value_or(usual);
  };
  const auto layers = static_cast<double>(file.number("layers"));
  const auto hidden = static_cast<double>(file.number("hidden"));
  file.put("residual_multiplier", number("scale_depth", 1) / std::sqrt(layers), "scale_depth");
  file.put("logits_scaling", hidden / number("dim_model_base", 1), "dim_model_base");
}

// rope_ratio times the usual base; keys and values have groups where multi_query_attention is on.
void hf_chatglm(HfTranslation& file) {
  constexpr double usual = 10000;
  file.put("rotary_base",
           usual * file.reader_.number("rope_ratio", Dimension::count, 1e-3, 1e9).value_or(1),
           "rope_ratio");
  if (!file.flag("multi_query_attention", false)) file.put("kv_heads", file.number("heads"));
}

// A map of attention, and the widening of the MLP (transformers, MptConfig).
void hf_mpt(HfTranslation& file) {
  file.put("ffn_hidden", file.integer("expansion_ratio", 4) * file.number("hidden"),
           "expansion_ratio");
  if (file.flag("no_bias", true)) {
    file.read({"linear_bias:false qkv_bias:false"});
    file.report("norms are counted with biases, of which these have none");
  }
  bool alibi = true;
  if (const Value* const map = file.reader_.optional("attn_config"); map && map->is_map()) {
    MapReader inner(*map, "attn_config");
    alibi = inner.boolean("alibi").value_or(true);
    if (inner.boolean("qk_ln").value_or(false)) file.read({across_heads_rows});
    if (const auto groups = inner.integer("kv_n_heads", hf_counts))
      file.put("kv_heads", *groups, "attn_config");
  }
  if (alibi) file.read({"positions:alibi max_positions:0 learned_pos_emb"});
}

void hf_dbrx(HfTranslation& file) {
  const auto put = [&](const char* map, const char* theirs, std::initializer_list<const char*> ours,
                       std::int64_t usual) {
    const Value* const value = file.reader_.optional(map);
    std::int64_t number = usual;
    if (value != nullptr && value->is_map()) {
      MapReader inner(*value, map);
      number = inner.integer(theirs, hf_sizes).value_or(usual);
    }
    for (const char* const key : ours) file.put(key, number, map);
  };
  // transformers, DbrxAttentionConfig and DbrxFFNConfig.
  put("attn_config", "kv_n_heads", {"kv_heads"}, 1);
  put("attn_config", "rope_theta", {"rotary_base"}, 10'000);
  put("ffn_config", "ffn_hidden_size", {"ffn_hidden", "expert_ffn_hidden"}, 3584);
  put("ffn_config", "moe_num_experts", {"experts"}, 4);
  put("ffn_config", "moe_top_k", {"top_k"}, 1);
  file.put("norm_epsilon", 1e-5);  // torch.nn.LayerNorm's: no field names it
}

void hf_olmo(HfTranslation& file) {
  file.report("norms are counted with gains, of which this class has none");
}

namespace {

// Layers as moe_layers lists them, at equal distances; else the last of interleave_moe_layer_step.
// False: none has experts.
bool put_llama4_experts(HfTranslation& file) {
  const char* const list = "moe_layers";
  std::int64_t every = file.integer("interleave_moe_layer_step", 1, 0), first = every - 1;
  if (const Value* const written = file.reader_.optional(list)) {
    const std::int64_t layers = file.number("layers");
    std::vector<std::int64_t> places;
    for (const Value& place : written->items)
      places.push_back(read_integer(place, list, {0, layers - 1}));
    if (places.empty()) return false;
    first = places.front();
    every = places.size() > 1 ? places[1] - first : std::max(first + 1, layers - first);
    std::vector<std::int64_t> regular;
    for (std::int64_t i = first; every > 0 && i < layers; i += every) regular.push_back(i);
    if (places != regular || first >= every) {
      file.refuse(list, "moe_layers are not every so many layers",
                  "write a model file of your own, with moe_every and moe_offset");
    }
  }
  if (every == 0) return false;
  file.put("moe_every", every, list);
  file.put("moe_offset", first, list);
  return true;
}

}  // namespace

// A layer without positions attends to all tokens.
void hf_llama4(HfTranslation& file) {
  if (put_llama4_experts(file)) {
    file.read({mixture_rows,
               "experts=num_local_experts:16 top_k=num_experts_per_tok:1 "
               "expert_ffn_hidden=intermediate_size shared_experts:1 router_score:sigmoid"});
  } else {
    file.read({"num_local_experts num_experts_per_tok intermediate_size"});
  }
  if (file.text("qk_norm") == "true") file.put("qk_norm_gains", false, "use_qk_norm");
  std::string letters;
  if (const Value* const list = file.reader_.optional("no_rope_layers")) {
    for (const Value& layer : list->items)
      letters += read_integer(layer, "no_rope_layers", {0, 1}) == 1 ? 'C' : 'F';
    const std::int64_t layers = file.number("layers");
    if (!letters.empty() && static_cast<std::int64_t>(letters.size()) != layers) {
      file.refuse("no_rope_layers",
                  fmt::format("no_rope_layers names {} layers, num_hidden_layers is {}",
                              letters.size(), layers),
                  "write 1 or 0 for every layer");
    }
  }
  if (letters.empty()) {
    constexpr std::int64_t usual = 4;  // transformers, Llama4TextConfig
    const std::int64_t every =
        file.reader_.integer("no_rope_layer_interval", hf_counts).value_or(usual);
    letters.assign(static_cast<std::size_t>(every), 'C');
    letters.back() = 'F';
  }
  file.read({"attention_pattern=layer_types:" + letters});
}

// Logits are multiplied.
void hf_cohere(HfTranslation& file) {
  const char* const field = "logit_scale";
  constexpr double usual = 0.0625;  // transformers, CohereConfig and Cohere2Config
  file.put("logits_scaling",
           1 / file.reader_.number(field, Dimension::count, 1e-9, 1e9).value_or(usual), field);
}

// Embeddings are multiplied by sqrt(hidden) (transformers, Gemma2Model).
void hf_gemma(HfTranslation& file) {
  file.put("embedding_multiplier", std::sqrt(static_cast<double>(file.number("hidden"))),
           "hidden_size");
  const char* const scalar = "query_pre_attn_scalar";
  if (const auto by = file.reader_.number(scalar, Dimension::count, 1, 1e9))
    file.put("attention_multiplier", 1 / std::sqrt(*by), scalar);
  if (file.reader_.optional("rope_local_base_freq") != nullptr)
    file.report("rope_local_base_freq, the windows' own base, is left out: it costs nothing");
}

namespace {

// Sizes that no key describes; 0 is none.
void refuse_sizes(HfTranslation& file, std::string_view field, std::int64_t usual,
                  const char* what) {
  if (file.integer(field, usual, 0) == 0) return;
  file.refuse(field, fmt::format("{}: {}", field, what),
              "write a model file of your own without them");
}

}  // namespace

// Layers without a window have heads of another size, and may have fewer of keys and values, which
// are then of one product (transformers, Gemma4TextAttention). Its MLP stands next to the experts.
void hf_gemma4(HfTranslation& file) {
  refuse_sizes(file, "hidden_size_per_layer_input", 256,
               "a table of embeddings for each layer is not modelled (Gemma 4 E2B, E4B)");
  hf_gemma4_unified(file);
}

void hf_gemma4_unified(HfTranslation& file) {
  hf_gemma(file);
  refuse_sizes(file, "num_kv_shared_layers", 0,
               "layers that use the keys and values of another are not modelled");
  const std::string way = file.reader_.text("use_bidirectional_attention").value_or("");
  if (way == "all") {
    file.refuse("use_bidirectional_attention",
                "use_bidirectional_attention: a window of attention without a mask is not modelled",
                "leave it out");
  }
  if (!way.empty())
    file.report("tokens of an image are counted as attending to earlier ones alone");
  file.put("attention_multiplier", 1, "model_type");
  const bool joint = file.flag("attention_k_eq_v", false);
  const std::int64_t size = file.integer("global_head_dim", 512),
                     fewer = file.integer("num_global_key_value_heads", file.number("kv_heads"));
  const std::string pattern = file.text("attention_pattern");
  const auto last = static_cast<std::size_t>(file.number("layers") - 1);
  if (pattern.find('S') == std::string::npos || pattern[last % pattern.size()] != 'F') {
    file.refuse("layer_types", "layer_types: the last layer of this class attends to all tokens",
                "write full_attention for it, and sliding_attention for others");
  }
  file.put("window_head_dim", file.number("head_dim"), "head_dim");
  file.put("window_kv_heads", file.number("kv_heads"), "num_key_value_heads");
  file.put("head_dim", size, "global_head_dim");
  if (joint) file.put("kv_heads", fewer, "num_global_key_value_heads");
  file.put("keys_as_values", joint, "attention_k_eq_v");
  file.report("the norm of values and the scalar of each layer, which cost little, are left out");
  if (!file.flag("enable_moe_block", false))
    return file.read({"num_experts top_k_experts moe_intermediate_size"});
  file.read(
      {"kind:moe experts=num_experts top_k=top_k_experts expert_norms:true "
       "expert_ffn_hidden=moe_intermediate_size"});
  file.put_shared(file.number("ffn_hidden"), "intermediate_size", "intermediate_size");
}

// hybrid_layer_pattern has 1 for a layer with a window; without it the first and each sixth have
// none (transformers, MiMoV2FlashConfig).
void hf_mimo_v2(HfTranslation& file) {
  const std::int64_t layers = file.number("layers");
  std::string letters;
  const char* const field = "hybrid_layer_pattern";
  if (const Value* const list = file.reader_.optional(field)) {
    for (const Value& layer : list->items)
      letters += read_integer(layer, field, {0, 1}) == 1 ? 'S' : 'F';
    const std::size_t named = letters.size();
    if (static_cast<std::int64_t>(named) != layers) {
      file.refuse(field,
                  fmt::format("{} names {} layers, num_hidden_layers is {}", field, named, layers),
                  "write 1 or 0 for every layer");
    }
  }
  for (std::int64_t i = static_cast<std::int64_t>(letters.size()); i < layers; ++i)
    letters += i == 0 || (i + 1) % 6 == 0 ? 'F' : 'S';
  file.read({"attention_pattern=layer_types:" + letters});
  hf_layer_kinds(file);
  const std::int64_t heads = file.number("heads"), size = file.number("head_dim"),
                     values = file.number("v_head_dim");
  const auto same = [&](const char* other, std::int64_t as) {
    if (file.integer(other, as) == as) return;
    file.refuse(other, fmt::format("{}: layers with a window have the others' {}", other, as),
                "write a model file of your own");
  };
  same("swa_num_attention_heads", heads);
  same("swa_v_head_dim", values);
  const std::int64_t window = file.integer("swa_head_dim", size),
                     kv_heads =
                         file.integer("swa_num_key_value_heads", 2 * file.number("kv_heads"));
  const bool some = file.text("attention_pattern").find('S') != std::string::npos;
  const char* const all = "add_full_attention_sink_bias";
  const bool full = file.flag(all, false), sinks = file.flag("add_swa_attention_sink_bias", true);
  if (full && some && !sinks)
    file.refuse(all, "sinks of layers without a window alone are not modelled", "set it to false");
  if (full) file.put("attention_sinks", true, all);
  if (!full && some && sinks) file.put("window_sinks", true, "add_swa_attention_sink_bias");
  if (!some) return;
  if (window != size) file.put("window_head_dim", window, "swa_head_dim");
  if (kv_heads != file.number("kv_heads"))
    file.put("window_kv_heads", kv_heads, "swa_num_key_value_heads");
}

// stepfun-ai/Step-3.5-Flash, modeling_step3p5.py: moe_layers_enum names the layers with experts
// (without it, all but the first), and attention_other_setting has the heads of those with a
// window.
void hf_step3p5(HfTranslation& file) {
  const std::int64_t layers = file.number("layers");
  const char* const sparse = "moe_layers_enum";
  const std::string listed = file.reader_.text(sparse).value_or("");
  const Value first = scalar_value(listed.empty() ? "1" : listed.substr(0, listed.find(',')),
                                   file.reader_.mark_of(sparse));
  std::int64_t next = read_integer(first, sparse, {0, layers - 1});
  file.put("first_dense_layers", next, sparse);
  std::string all;
  for (; next < layers; ++next) all += fmt::format("{}{}", all.empty() ? "" : ",", next);
  if (!listed.empty() && listed != all) {
    file.refuse(sparse, "moe_layers_enum: a dense layer follows one of experts",
                "write a model file of your own: its first layers may be dense");
  }
  const char* const width = "share_expert_dim";
  file.put_shared(file.integer(width, file.number("expert_ffn_hidden") * file.number("top_k")),
                  width, width);
  if (file.text("attention_pattern").find('S') == std::string::npos) return;
  const Value* const own = file.reader_.optional("attention_other_setting");
  if (own == nullptr) return;
  MapReader others(*own, "attention_other_setting");
  const auto put = [&](const char* ours, const char* theirs, std::string_view as) {
    const auto value = others.integer(theirs, hf_sizes);
    if (value && *value != file.number(as)) file.put(ours, *value, "attention_other_setting");
  };
  put("window_heads", "num_attention_heads", "heads");
  put("window_kv_heads", "num_attention_groups", "kv_heads");
  put("window_head_dim", "head_dim", "head_dim");
}

// One head of keys and values.
void hf_multi_query(HfTranslation& file) {
  if (file.flag("multi_query", true)) file.put("kv_heads", 1, "multi_query");
}

void hf_falcon(HfTranslation& file) {
  const bool later = file.flag("new_decoder_architecture", false);
  hf_multi_query(file);
  const std::int64_t groups = file.integer("num_kv_heads", file.number("heads"));
  if (later) file.put("kv_heads", groups, "num_kv_heads");
  const bool parallel = file.flag("parallel_attn", true) || later;
  const std::int64_t norms = file.integer("num_ln_in_parallel_attn", later ? 2 : 1);
  file.put("parallel_block", parallel, "parallel_attn");
  if (parallel && !(later && norms == 2)) file.put("shared_norm", true, "num_ln_in_parallel_attn");
  if (file.flag("alibi", false)) file.read({"positions:alibi rope_scaling"});
}

// Two rows more than positions; 350M has a narrower embedding and its norms after the residuals,
// without a last one.
void hf_opt(HfTranslation& file) {
  constexpr std::int64_t reserved = 2;  // transformers, OPTLearnedPositionalEmbedding, self.offset
  file.put("max_positions", file.number("max_positions") + reserved, "max_position_embeddings");
  if (file.number("embedding_dim") == file.number("hidden")) file.drop("embedding_dim");
  if (!file.flag("do_layer_norm_before", true)) {
    file.put("norm_placement", "after", "do_layer_norm_before");
  } else if (file.flag("_remove_final_layer_norm", false)) {
    file.report("_remove_final_layer_norm is left out: the norm before the head is counted");
  }
}

// [[["global", "local"], 12]]: the words, so many times, one list after another.
void hf_gpt_neo(HfTranslation& file) {
  const Value* const types = file.reader_.optional("attention_types");
  std::string letters = types == nullptr ? "FS" : "";
  const auto add = [&](const Value& word) {
    const std::string text = read_text(word, "attention_types");
    if (text != "global" && text != "local") {
      throw ConfigError(word.mark, fmt::format("attention_types: {} is not known", quote(text)),
                        "one of global, local");
    }
    letters += text == "global" ? 'F' : 'S';
  };
  if (types != nullptr) {
    for (const Value& part : types->items) {
      if (part.items.size() != 2) {
        throw ConfigError(part.mark, "attention_types: a part is no list of kinds and a number",
                          "write [[[\"global\", \"local\"], 12]]");
      }
      const auto times = read_integer(part.items[1], "attention_types", {1, 100'000});
      for (std::int64_t i = 0; i < times; ++i) std::ranges::for_each(part.items[0].items, add);
    }
  }
  const bool windows = letters.find('S') != std::string::npos;
  file.read({windows ? "sliding_window=window_size:256" : "window_size"});
  file.put_pattern(letters, "attention_types");
}

// The head of masked language modelling and the pooler are there as the first of `architectures`
// has them.
void hf_bert(HfTranslation& file) {
  const char* const field = "architectures";
  const Value* const list = file.reader_.optional(field);
  const bool named = list != nullptr && !list->items.empty();
  const std::string of = named ? read_text(list->items.front(), field) : "BertForPreTraining";
  const bool both = of == "BertForPreTraining", masked = of.ends_with("ForMaskedLM");
  file.put("head_transform", masked || both, field);
  file.put("pooler", !masked, field);
  if (both) file.report("the product that predicts the next sentence, of 2 x hidden, is left out");
}

namespace {

// "relu", "gated-gelu": an optional gate, and the activation.
void feed_forward(HfTranslation& file, const char* usual) {
  if (const Value* const list = file.reader_.optional("architectures");
      list != nullptr && !list->items.empty() &&
      list->items.front().text.ends_with("EncoderModel")) {
    file.refuse("architectures",
                fmt::format("{} is the encoder by itself, which is not modelled",
                            shortened(list->items.front().text)),
                "import the file of the model with both stacks");
  }
  const char* const field = "feed_forward_proj";
  std::string word = file.reader_.text(field).value_or(usual);
  const std::vector<std::string> known{"relu", "gelu", "silu", "gated-gelu", "gated-silu"};
  const std::string plain = word.ends_with("gelu_new") ? word.substr(0, word.size() - 4) : word;
  if (std::ranges::count(known, plain) == 0) {
    file.refuse(field, fmt::format("{}: {} is not known", field, quote(word)),
                known_names(word, known));
  }
  const std::size_t gate = plain.starts_with("gated-") ? 6 : 0;
  file.put("gated_mlp", gate > 0, field);
  file.put("activation", plain.substr(gate), field);
  const char* const key = "relative_attention_num_buckets";
  if (const std::int64_t buckets = file.integer(key, relative_buckets);
      buckets != relative_buckets) {
    file.refuse(key,
                fmt::format("{} {}: other tables than of {} buckets are not modelled", key, buckets,
                            relative_buckets),
                fmt::format("set {}", relative_buckets));
  }
}

}  // namespace

void hf_t5(HfTranslation& file) { feed_forward(file, "relu"); }

void hf_mt5(HfTranslation& file) { feed_forward(file, "gated-gelu"); }

}  // namespace costmodel
