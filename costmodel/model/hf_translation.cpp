#include "costmodel/model/hf_translation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "costmodel/base/escape.hpp"
#include "costmodel/config/synonyms.hpp"
#include "costmodel/model/hf_checkpoint.hpp"
#include "costmodel/model/hf_rope.hpp"

namespace costmodel {

namespace {

// Of transformers' PretrainedConfig, and of the classes read here (their documentation, 4.57).
constexpr std::string_view costless =
    "_name_or_path add_cross_attention architectures attention_softmax_in_fp32 "
    "attn_implementation auto_map aux_loss_alpha bad_words_ids begin_suppress_tokens "
    "bias_dropout_fusion bos_token_id cache_implementation chunk_size "
    "chunk_size_feed_forward classifier_dropout cls_token_id cross_attention_hidden_size "
    "decoder_start_token_id diversity_penalty do_sample dtype early_stopping "
    "embedding_initializer_range encoder_no_repeat_ngram_size eos_token_id ep_size "
    "exponential_decay_length_penalty finetuning_task forced_bos_token_id "
    "forced_eos_token_id fused_add_norm gradient_checkpointing id2label image_token_id "
    "inference_runner init_std initial_context_length initializer_factor initializer_range "
    "input_jitter_noise is_decoder is_encoder_decoder keys_to_ignore_at_inference label2id "
    "layer_norm_eps layer_norm_epsilon layerdrop length_penalty mamba_ssm_cache_dtype "
    "masked_softmax_fusion max_batch_size max_length max_position_embeddings "
    "max_sequence_length max_window_layers min_length model_type n_ctx n_positions "
    "no_repeat_ngram_size norm_eps norm_topk_prob num_beam_groups num_beams "
    "num_logits_to_keep num_return_sequences offset_alibi original_max_position_embeddings "
    "output_attentions output_hidden_states output_past output_router_logits output_scores "
    "pad_key_length pad_token_id pad_vocab_size_multiple pre_allocate_kv_cache prefix "
    "pretraining_tp problem_type pruned_heads query_pre_attn_scalar "
    "relative_attention_max_distance remove_invalid_values reorder_and_upcast_attn "
    "repetition_penalty rescale_prenorm_residual residual_in_fp32 return_dict "
    "return_dict_in_generate rms_norm_eps router_aux_loss_coef router_jitter_noise "
    "scale_attention_softmax_in_fp32 scale_attn_by_inverse_layer_idx scale_attn_weights "
    "sep_token_id seq_aux seq_length skip_bias_add skip_bias_add_qkv slow_but_exact "
    "summary_activation summary_first_dropout summary_proj_to_labels summary_type "
    "summary_use_proj suppress_tokens task_specific_params temperature tie_encoder_decoder "
    "tokenizer_class top_k top_p torch_dtype transformers_version typical_p unk_token_id "
    "use_bfloat16 use_cache use_mambapy use_return_dict validate_runner_input video_token_id "
    "vision_end_token_id vision_start_token_id vision_token_id";

// Further ones by how they begin: the range of a scan's initial time steps, kernels' choices.
constexpr std::array<std::string_view, 5> costless_starts{"time_step_", "use_mamba_kernels",
                                                          "_attn", "torchscript", "tf_"};

// Of keys, those that count layers, heads and experts.
constexpr std::string_view counts =
    "layers encoder_layers decoder_layers heads kv_heads experts top_k shared_experts";

// Of keys, those that are none where their field is null, by what none is: no key, or 0.
constexpr std::string_view null_is_no_key = "sliding_window attention_chunk",
                           may_be_none = "shared_experts first_dense_layers q_lora_rank";

// Of a key, what a word of theirs is.
struct Spelling {
  std::string_view key, theirs, ours;
};
constexpr std::array<Spelling, 28> spellings{{{"activation", "gelu", "gelu"},
                                              {"activation", "quick_gelu", "gelu"},
                                              {"activation", "gelu_new", "gelu"},
                                              {"activation", "gelu_fast", "gelu"},
                                              {"activation", "gelu_python", "gelu"},
                                              {"activation", "gelu_pytorch_tanh", "gelu"},
                                              {"activation", "bloom_gelu", "gelu"},
                                              {"activation", "silu", "silu"},
                                              {"activation", "swish", "silu"},
                                              {"activation", "swiglu", "silu"},
                                              {"activation", "relu", "relu"},
                                              {"activation", "relu2", "squared-relu"},
                                              {"activation", "sqrelu", "squared-relu"},
                                              {"activation", "squared_relu", "squared-relu"},
                                              {"attention_pattern", "full_attention", "F"},
                                              {"attention_pattern", "sliding_attention", "S"},
                                              {"attention_pattern", "linear_attention", "D"},
                                              {"attention_pattern", "chunked_attention", "C"},
                                              {"attention_pattern", "attention", "F"},
                                              {"attention_pattern", "mamba", "M"},
                                              {"attention_pattern", "conv", "V"},
                                              {"router_score", "softmax", "pre-softmax"},
                                              {"router_score", "sigmoid", "sigmoid"},
                                              {"router_bias", "noaux_tc", "true"},
                                              {"router_bias", "true", "true"},
                                              {"router_bias", "false", "false"},
                                              {"router_bias", "greedy", "false"},
                                              {"router_bias", "group_limited_greedy", "false"}}};

// A choice that no key describes: what the class usually has, and what is done in place of it.
struct Choice {
  std::string_view field, usual, instead;
};
constexpr std::array<Choice, 12> choices{
    {{"apply_residual_connection_post_layernorm", "false", "the same operators in another order"},
     {"layer_norm_elementwise_affine", "true", "norms are counted with gains"},
     {"use_bias", "false", "products are counted without bias"},
     {"projectors_bias", "false", "products are counted without bias"},
     {"mamba_proj_bias", "false", "products are counted without bias"},
     {"use_conv_bias", "true", "the convolution is counted with bias"},
     {"mamba_conv_bias", "true", "the convolution is counted with bias"},
     {"conv_bias", "false", "the convolution and its products are counted without bias"},
     {"rms_norm", "true", "the gated norm is counted with gains"},
     {"position_embedding_type", "absolute", "positions are a table"},
     {"lm_head_bias", "false", "the head is counted without bias"},
     {"attention_out_bias", "false", "the bias of the attention output follows the MLP's"}}};

// The shortest part of the letters that repeats to all of them.
std::string period(const std::string& letters) {
  for (std::size_t n = 1; n < letters.size(); ++n) {
    bool repeats = true;
    for (std::size_t i = n; i < letters.size() && repeats; ++i)
      repeats = letters[i] == letters[i - n];
    if (repeats) return letters.substr(0, n);
  }
  return letters;
}

// What a word of the field is for the key. Throws ConfigError for an unknown one.
std::string_view translated(std::string_view key, std::string_view field, const std::string& word,
                            const Mark& mark) {
  std::vector<std::string> known;
  for (const Spelling& each : spellings) {
    if (each.key != key) continue;
    if (word == each.theirs) return each.ours;
    known.emplace_back(each.theirs);
  }
  throw ConfigError(mark, fmt::format("{}: {} is not known", field, quote(word)),
                    known_names(word, known));
}

// The names of a row, which have a bar between them.
std::vector<std::string_view> names_of(std::string_view theirs) {
  std::vector<std::string_view> all;
  std::size_t bar = 0;
  for (; (bar = theirs.find('|')) != theirs.npos; theirs.remove_prefix(bar + 1))
    all.push_back(theirs.substr(0, bar));
  all.push_back(theirs);
  return all;
}

// Whether the usual value's form is that of a number with a point.
bool is_real(std::string_view usual) {
  return usual.find('.') != usual.npos && usual.find_first_not_of("0123456789.") == usual.npos;
}

}  // namespace

bool is_costless_hf_field(std::string_view key) {
  return has_word(costless, key) ||
         std::ranges::any_of(costless_starts,
                             [&](std::string_view start) { return key.starts_with(start); });
}

HfTranslation::HfTranslation(const Value& text, std::string_view model_type)
    : reader_(text, "config.json"),
      file_(text),
      source_(fmt::format("Hugging Face config.json, model_type {}", model_type)) {
  out_.kind = Value::Kind::map;
  out_.mark = text.mark;
}

std::string HfTranslation::text(std::string_view ours) const {
  const Value* const value = out_.find(ours);
  return value == nullptr ? "" : value->text;
}

std::int64_t HfTranslation::number(std::string_view ours) const {
  const Value* const value = out_.find(ours);
  return value == nullptr ? 0 : read_integer(*value, std::string(ours), {0, hf_sizes.most});
}

void HfTranslation::note(const std::string& what) {
  source_ += "; " + what;
  report(what);
}

HfTranslation::Row HfTranslation::parse(std::string_view word) {
  const std::size_t equals = word.find('='), colon = word.find(':');
  if (equals == word.npos && colon == word.npos) return {"", word, ""};
  if (equals == word.npos) return {word.substr(0, colon), "", word.substr(colon + 1)};
  Row row{word.substr(0, equals), word.substr(equals + 1), ""};
  if (row.theirs.ends_with('?')) {
    row.optional = true;
    row.theirs.remove_suffix(1);
  } else if (colon != word.npos) {
    row.theirs = word.substr(equals + 1, colon - equals - 1);
    row.usual = word.substr(colon + 1);
  }
  return row;
}

void HfTranslation::read(const std::vector<std::string_view>& texts) {
  std::vector<Row> rows;
  const auto add = [&rows](std::string_view word) {
    if (word.starts_with('-')) {
      std::erase_if(rows, [&](const Row& row) { return row.ours == word.substr(1); });
      return;
    }
    const Row row = parse(word);
    const auto earlier = std::ranges::find(rows, row.ours, &Row::ours);
    if (row.ours.empty() || earlier == rows.end()) {
      rows.push_back(row);
    } else {
      *earlier = row;
    }
  };
  for (std::string_view text : texts) {
    while (!text.empty()) {
      const std::size_t end = std::min(text.find(' '), text.size());
      if (end > 0) add(text.substr(0, end));
      text.remove_prefix(std::min(end + 1, text.size()));
    }
  }
  for (const Row& row : rows) read_row(row);
}

void HfTranslation::read_row(const Row& row) {
  if (row.ours == "dropout" && !row.theirs.empty()) return dropout(row);
  if (row.ours == "attention_pattern" && !row.theirs.empty()) return pattern(row);
  if (row.ours == "mtp_layers") return predictions(row.theirs);
  if (row.theirs.starts_with('!')) return report_choice(row.theirs.substr(1));
  if (row.theirs.empty()) return put_usual(row, "model_type");
  const std::vector<std::string_view> names = names_of(row.theirs);
  const Value* value = nullptr;
  std::string_view field = names.front();
  for (const std::string_view name : names) {  // all of them are known
    const Value* const other = reader_.optional(name);
    if (value == nullptr && other != nullptr) field = name;
    if (value == nullptr) value = other;
  }
  if (row.ours.empty()) return;
  if (value != nullptr) return put_value(row, field, *value);
  if (std::ranges::any_of(names, [&](std::string_view name) { return is_null(name); })) {
    if (has_word(null_is_no_key, row.ours)) return;
    if (has_word(may_be_none, row.ours)) return put(std::string(row.ours), 0, field);
  }
  if (row.optional) return;
  if (row.usual.empty()) reader_.required(field);
  put_usual(row, field);
}

bool HfTranslation::is_null(std::string_view field) const {
  const Value* const value = file_.find(field);
  return value != nullptr && value->kind == Value::Kind::null;
}

// A list of zeros, then ones: the first layers are dense, all others have experts.
bool HfTranslation::put_first_dense(std::string_view field, const Value& layers) {
  std::string all;
  for (const Value& layer : layers.items) all += layer.text;
  const std::size_t dense = std::min(all.find('1'), all.size());
  if (all.find_first_not_of('1', dense) != std::string::npos) return false;
  put("first_dense_layers", dense, field);
  return true;
}

void HfTranslation::put_value(const Row& row, std::string_view field, const Value& value) {
  const auto layers = static_cast<std::size_t>(number("layers"));
  if (layers > 1 && value.items.size() == layers) {
    if (row.ours == "moe_every" && put_first_dense(field, value)) return put("moe_every", 1, field);
    const auto differs = [&](const Value& item) { return item.text != value.items[0].text; };
    if (std::ranges::any_of(value.items, differs)) {
      refuse(field, fmt::format("{}: its layers differ", field),
             "write a model file of your own, with one value for all layers");
    }
    return put_value(row, field, value.items[0]);
  }
  const std::string what(field), key(row.ours);
  if (std::ranges::count(spellings, row.ours, &Spelling::key) > 0)
    return put(key, translated(key, field, read_text(value, what), value.mark), field);
  if (row.usual == "true" || row.usual == "false")
    return put(key, read_boolean(value, what), field);
  if (is_real(row.usual))
    return put(key, read_number(value, what, Dimension::count, 0, 1e12), field);
  const bool none = row.optional || row.usual == "0" || has_word(may_be_none, row.ours);
  const bool few = has_word(counts, row.ours);
  put(key, read_integer(value, what, {none ? 0 : 1, few ? hf_counts.most : hf_sizes.most}), field);
}

void HfTranslation::put_usual(const Row& row, std::string_view field) {
  const std::string key(row.ours);
  if (row.usual == "4h") return put(key, 4 * number("hidden"), field);
  if (row.usual == "h/a") {
    const std::int64_t hidden = number("hidden"), heads = number("heads");
    if (hidden % heads != 0) {
      refuse(fields_["hidden"],
             fmt::format("{} {} is not divisible by {} {}", fields_["hidden"], hidden,
                         fields_["heads"], heads),
             row.theirs.empty() ? "choose sizes that divide"
                                : "choose sizes that divide, or give head_dim");
    }
    return put(key, hidden / heads, field);
  }
  if (row.ours != "attention_pattern" &&
      std::ranges::count(spellings, row.ours, &Spelling::key) > 0)
    return put(key, translated(key, field, std::string(row.usual), {}), field);
  const Value* const other = out_.find(row.usual);
  put(key, other != nullptr ? std::string_view(other->text) : row.usual, field);
}

// attention_bias of most classes is of queries, keys, values and the output; Shardplan has one key
// for the first three, and one for output and MLP.
void HfTranslation::report_choice(std::string_view field) {
  if (field == "attention_bias" || field == "bias") {
    const bool mlp = text("linear_bias") == "true";
    if ((text("qkv_bias") == "true") != mlp)
      note(fmt::format("the bias of the attention output is {}", mlp ? "added" : "left out"));
    return;
  }
  const Choice& choice = *std::ranges::find(choices, field, &Choice::field);
  const std::string word = reader_.text(field).value_or(std::string(choice.usual));
  if (word == choice.usual) return;
  report(fmt::format("{}{} is left out: {}", field, choice.usual == "true" ? " false" : "",
                     choice.instead));
}

void HfTranslation::dropout(const Row& row) {
  const double usual = row.usual == "0.1" ? 0.1 : 0;
  const std::vector<std::string_view> names = names_of(row.theirs);
  double most = 0;
  for (const std::string_view name : names)
    most = std::max(most, reader_.number(name, Dimension::count, 0, 0.99).value_or(usual));
  put("dropout", most, names.front());
}

void HfTranslation::pattern(const Row& row) {
  std::string letters(row.usual);
  const bool lightning = letters.find('L') != letters.npos;
  const bool scans = letters.find('M') != letters.npos;
  if (row.theirs != "layer_types") {  // the distance between layers of full attention
    const auto every = reader_.integer(row.theirs, hf_counts).value_or(row.usual[0] - '0');
    letters = std::string(static_cast<std::size_t>(every - 1),
                          row.theirs.starts_with("full") ? 'D' : 'S') +
              'F';
  }
  if (const Value* const types = reader_.optional("layer_types")) {
    letters.clear();
    for (const Value& word : types->items)
      letters += translated(row.ours, "layer_types", read_text(word, "layer_types"), word.mark);
    // transformers 5.8 calls every mixer that is no attention linear_attention.
    if (lightning || scans) std::ranges::replace(letters, 'D', lightning ? 'L' : 'M');
    const std::int64_t layers = number("layers");
    // It may go on over the layers that predict further tokens (vLLM, Step3p5Config).
    const std::int64_t further =
        reader_.integer("num_nextn_predict_layers", {0, hf_counts.most}).value_or(0);
    if (further > 0 && std::cmp_equal(letters.size(), layers + further))
      letters.resize(static_cast<std::size_t>(layers));
    if (!std::cmp_equal(letters.size(), layers)) {
      refuse("layer_types",
             fmt::format("layer_types names {} layers, num_hidden_layers is {}", letters.size(),
                         layers),
             "name the kind of every layer");
    }
  }
  put_pattern(letters, "layer_types");
}

void HfTranslation::put_pattern(const std::string& letters, std::string_view field) {
  std::string all;  // of a model of fewer layers, its own
  for (std::int64_t i = 0; i < number("layers"); ++i)
    all += letters[static_cast<std::size_t>(i) % letters.size()];
  if (number("sliding_window") == 0) std::ranges::replace(all, 'S', 'F');
  if (number("attention_chunk") == 0) std::ranges::replace(all, 'C', 'F');
  const std::string pattern = period(all);
  if (pattern == "F") {
    drop("sliding_window");
    drop("attention_chunk");
  } else if (pattern != "S") {
    put("attention_pattern", pattern, field);
  }
}

void HfTranslation::predictions(std::string_view field) {
  const std::int64_t more = reader_.integer(field, {0, 100}).value_or(0);
  if (more == 0) return;
  const bool sparse = text("kind") == "moe";
  note(fmt::format("its {} multi-token prediction {} left out{}", more,
                   more == 1 ? "layer is" : "layers are",
                   sparse ? fmt::format(" (model.mtp_layers={} adds it)", more) : ""));
}

void HfTranslation::put_shared(std::int64_t width, std::string_view field, const char* wide) {
  const std::int64_t own = number("expert_ffn_hidden");
  if (width % own != 0) {
    refuse(field,
           fmt::format("{} {} is no multiple of {} {}", field, width, fields_["expert_ffn_hidden"],
                       own),
           "write a model file of your own, with a width that is");
  }
  put("shared_experts", width / own, wide);
}

void HfTranslation::check_heads() {
  const std::int64_t heads = number("heads"), of = number("kv_heads");
  if (of == 0 || heads % of == 0) return;
  refuse(
      fields_["kv_heads"],
      fmt::format("{} {} does not divide {} {}", fields_["kv_heads"], of, fields_["heads"], heads),
      "every key/value head serves the same number of query heads");
}

// What serving asks of a model: its length, and the format of the weights.
void HfTranslation::serving() {
  const auto length = reader_.integer("max_position_embeddings", {1, 1'000'000'000});
  const Value* positions = out_.find("positions");
  const bool learned = positions != nullptr && positions->text == "learned";
  const bool given = out_.find("context_length") != nullptr;
  if (length && !learned && !given) put("context_length", *length, "max_position_embeddings");
  const Value* stored = reader_.optional("quantization_config");
  if (stored == nullptr || !stored->is_map()) return;
  const StoredWeights weights = stored_weights(*stored, number("layers"), number("experts") > 0);
  if (weights.format.empty()) {
    report(
        "quantization_config is left out: its format is not known here; set serving.weights to "
        "serve it");
    return;
  }
  report(
      fmt::format("quantization_config: {} weights are served; training is in "
                  "training.precision, whatever the file stores",
                  weights.format));
  const char* const field = "quantization_config";
  put("checkpoint", weights.format, field);
  if (weights.attention) put("unquantized_attention", true, field);
  if (weights.dense) put("unquantized_dense", true, field);
  if (weights.layers > 0) put("unquantized_layers", weights.layers, field);
}

HfModel HfTranslation::take() {
  check_heads();
  if (number("expert_groups") <= 1) {
    drop("expert_groups");
    drop("expert_groups_per_token");
  }
  put_rotation(*this);
  put("source", source_);
  serving();
  for (const char* key : {"rms_norm_eps", "layer_norm_eps", "layer_norm_epsilon", "norm_eps",
                          "norm_epsilon", "layernorm_epsilon"}) {
    if (reader_.optional(key) == nullptr) continue;
    put("norm_epsilon", reader_.number(key, Dimension::count, 0, 1).value_or(0), key);
    break;
  }
  HfModel model{std::move(out_), std::move(omitted_), {}};
  for (const std::string_view key : reader_.unread())
    if (!is_costless_hf_field(key)) model.unread.emplace_back(key);
  return model;
}

}  // namespace costmodel
