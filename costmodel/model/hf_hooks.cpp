#include "costmodel/model/hf_hooks.hpp"

#include <algorithm>
#include <cmath>

#include "costmodel/base/escape.hpp"
#include "costmodel/model/model_spec.hpp"

namespace costmodel {

namespace {

// Layers of mlp_only_layers are dense; Shardplan has only the first ones so. `some`: a file may
// list layers at all.
void dense_layers(HfTranslation& file, bool some) {
  const Value* const list = file.reader_.optional("mlp_only_layers");
  const bool every = file.integer("decoder_sparse_step", 1) == 1;
  if (!every || (!some && list != nullptr && !list->items.empty())) {
    file.refuse(every ? "mlp_only_layers" : "decoder_sparse_step",
                every ? "mlp_only_layers: not every layer has experts"
                      : "decoder_sparse_step: not every layer has experts",
                "set moe_every or first_dense_layers in a model file of your own");
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
  const std::int64_t full = std::min(layers, file.integer("max_window_layers", layers, 0));
  std::string letters(static_cast<std::size_t>(full), 'F');
  letters.append(static_cast<std::size_t>(layers - full), 'S');
  file.read({"attention_pattern=layer_types:" + letters});
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
      "name, is left out (mtp_layers: 1 adds it)");
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
void hf_minimax(HfTranslation& file) {
  const std::int64_t head = file.number("head_dim"), rotated = file.integer("rotary_dim", head);
  if (rotated != head) {
    file.put("rotary_percent", static_cast<double>(rotated) / static_cast<double>(head),
             "rotary_dim");
  }
}

// The last of moe_every layers has experts; a layer without positions attends to all tokens.
void hf_llama4(HfTranslation& file) {
  file.put("moe_offset", file.number("moe_every") - 1, "interleave_moe_layer_step");
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
  file.read({"attention_pattern=layer_types:" + (letters.empty() ? "CCCF" : letters)});
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
  const bool both = of == "BertForPreTraining", masked = of == "BertForMaskedLM";
  file.put("head_transform", masked || both, field);
  file.put("pooler", !masked, field);
  if (both) file.report("the product that predicts the next sentence, of 2 x hidden, is left out");
}

namespace {

// "relu", "gated-gelu": an optional gate, and the activation.
void feed_forward(HfTranslation& file, const char* usual) {
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
