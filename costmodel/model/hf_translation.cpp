#include "costmodel/model/hf_translation.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "costmodel/base/escape.hpp"
#include "costmodel/config/synonyms.hpp"
#include "costmodel/model/model_spec.hpp"

namespace costmodel {

namespace {

// Of transformers' PretrainedConfig, and of the classes read here (their documentation, 4.57).
constexpr std::string_view costless =
    "_name_or_path architectures attention_softmax_in_fp32 attn_implementation auto_map "
    "aux_loss_alpha bad_words_ids begin_suppress_tokens bias_dropout_fusion bos_token_id "
    "cache_implementation chunk_size chunk_size_feed_forward classifier_dropout cls_token_id "
    "decoder_start_token_id dtype embedding_initializer_range eos_token_id ep_size "
    "finetuning_task fused_add_norm gradient_checkpointing id2label inference_runner init_std "
    "initial_context_length initializer_factor initializer_range input_jitter_noise is_decoder "
    "is_encoder_decoder keys_to_ignore_at_inference label2id layer_norm_eps layer_norm_epsilon "
    "layerdrop mamba_ssm_cache_dtype masked_softmax_fusion max_batch_size max_length "
    "max_position_embeddings max_sequence_length max_window_layers model_type n_ctx n_positions "
    "norm_eps norm_topk_prob num_logits_to_keep num_return_sequences offset_alibi "
    "original_max_position_embeddings output_attentions output_hidden_states output_past "
    "output_router_logits pad_key_length pad_token_id pad_vocab_size_multiple "
    "pre_allocate_kv_cache prefix pretraining_tp query_pre_attn_scalar "
    "relative_attention_max_distance reorder_and_upcast_attn rescale_prenorm_residual "
    "residual_in_fp32 return_dict rms_norm_eps router_aux_loss_coef router_jitter_noise "
    "scale_attention_softmax_in_fp32 scale_attn_by_inverse_layer_idx scale_attn_weights "
    "sep_token_id seq_aux seq_length skip_bias_add skip_bias_add_qkv slow_but_exact "
    "summary_activation summary_first_dropout summary_proj_to_labels summary_type "
    "summary_use_proj suppress_tokens task_specific_params tokenizer_class torch_dtype "
    "transformers_version unk_token_id use_cache use_mambapy validate_runner_input";

// Further ones by how they begin: the range of a scan's initial time steps, kernels' choices.
constexpr std::array<std::string_view, 5> costless_starts{"time_step_", "use_mamba_kernels",
                                                          "_attn", "torchscript", "tf_"};

struct Spelling {
  std::string_view theirs, ours;
};
constexpr std::array<Spelling, 12> activations{{{"gelu", "gelu"},
                                                {"gelu_new", "gelu"},
                                                {"gelu_fast", "gelu"},
                                                {"gelu_python", "gelu"},
                                                {"gelu_pytorch_tanh", "gelu"},
                                                {"bloom_gelu", "gelu"},
                                                {"silu", "silu"},
                                                {"swish", "silu"},
                                                {"swiglu", "silu"},
                                                {"relu", "relu"},
                                                {"relu2", "squared-relu"},
                                                {"squared_relu", "squared-relu"}}};

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

char letter_of(const Value& word) {
  const std::string text = read_text(word, "layer_types");
  if (text == "full_attention") return 'F';
  if (text == "sliding_attention") return 'S';
  if (text == "linear_attention") return 'D';
  throw ConfigError(word.mark, fmt::format("layer_types: {} is not known", quote(text)),
                    "one of full_attention, sliding_attention, linear_attention");
}

}  // namespace

bool is_costless_hf_field(std::string_view key) {
  return has_word(costless, key) ||
         std::any_of(costless_starts.begin(), costless_starts.end(),
                     [&](std::string_view start) { return key.starts_with(start); });
}

// What serving asks of a model: its length, and the format of the weights.
void HfTranslation::serving() {
  const auto length = reader_.integer("max_position_embeddings", {1, 1'000'000'000});
  const Value* positions = out_.find("positions");
  const bool learned = positions != nullptr && positions->text == "learned";
  if (length && !learned) put("context_length", *length, "max_position_embeddings");
  const Value* stored = reader_.optional("quantization_config");
  if (stored == nullptr || !stored->is_map()) return;
  tell(
      "quantization_config is left out: training is in training.precision, whatever the file "
      "stores");
  const auto is = [&](const char* key, std::string_view word) {
    const Value* value = stored->find(key);
    return value != nullptr && value->text == word;
  };
  const char* method = "quant_method";
  if (is(method, "fp8") || is(method, "fbgemm_fp8")) {
    put("checkpoint", "fp8", "quantization_config");
  } else if (is(method, "mxfp4")) {
    put("checkpoint", "mxfp4", "quantization_config");
  } else if ((is(method, "awq") || is(method, "gptq")) && is("bits", "4")) {
    put("checkpoint", "int4", "quantization_config");
  }
}

HfModel HfTranslation::take() {
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

std::int64_t HfTranslation::size_or(const std::string& ours, std::string_view hf_key,
                                    IntegerRange range, std::int64_t usual) {
  const std::int64_t value = reader_.integer(hf_key, range).value_or(usual);
  put(ours, value, hf_key);
  return value;
}

std::string_view HfTranslation::spelled(std::string_view usual, std::string_view other) {
  return reader_.optional(usual) == nullptr && reader_.optional(other) != nullptr ? other : usual;
}

void HfTranslation::dropout(const std::vector<std::string_view>& hf_keys, double usual) {
  double most = 0;
  for (const auto key : hf_keys)
    most = std::max(most, reader_.number(key, Dimension::count, 0, 0.99).value_or(usual));
  put("dropout", most, hf_keys.front());
}

void HfTranslation::activation(std::string_view hf_key, std::string_view usual) {
  const std::string word = reader_.text(hf_key).value_or(std::string(usual));
  std::vector<std::string> known;
  for (const Spelling& each : activations) {
    if (word == each.theirs) return put("activation", each.ours, hf_key);
    known.emplace_back(each.theirs);
  }
  throw ConfigError(reader_.mark_of(hf_key),
                    fmt::format("{}: {} is not known", hf_key, quote(word)),
                    known_names(word, known));
}

void HfTranslation::put_rotation(std::optional<double> base, std::string_view base_key,
                                 std::optional<double> part, std::string_view part_key) {
  const ModelSpec usual;
  if (base && *base != usual.rotary_base) put("rotary_base", *base, base_key);
  if (part && *part != usual.rotary_percent) put("rotary_percent", *part, part_key);
}

void HfTranslation::rotary() {
  put("positions", "rotary", "model_type");
  put("max_positions", 0, "model_type");
  std::optional<double> base = reader_.number("rope_theta", Dimension::count, 1, 1e12);
  const auto percent = reader_.number("partial_rotary_factor", Dimension::count, 1e-3, 1);
  if (const Value* fresh = rope_parameters())
    base = MapReader(*fresh, "rope_parameters").number("rope_theta", Dimension::count, 1, 1e12);
  put_rotation(base, "rope_theta", percent, "partial_rotary_factor");
  rope_scaling();
}

const Value* HfTranslation::rope_parameters() {
  const Value* all = reader_.optional("rope_parameters");
  if (all == nullptr || !all->is_map()) return nullptr;
  const Value* full = all->find("full_attention");
  return full != nullptr && full->is_map() ? full : all;
}

void HfTranslation::rope_scaling() {
  const Value* scaling = reader_.optional("rope_scaling");
  if (scaling == nullptr) scaling = rope_parameters();
  if (scaling == nullptr || !scaling->is_map()) return;
  MapReader inner(*scaling, "rope_scaling");
  std::string type = inner.text("rope_type").value_or(inner.text("type").value_or("default"));
  if (type == "su") type = "longrope";  // as Phi-3's first files call it
  if (type == "default" || type == "none") return;
  constexpr double llama3_factor = 8;
  const auto factor = inner.number("factor", Dimension::count, 1, 1e4);
  const bool usable = factor || type == "llama3" || type == "longrope";
  if (std::ranges::count(rope_scaling_names, type) == 0 || !usable) {
    return tell(
        fmt::format("its rope_scaling {} is left out{}: it costs nothing, but an exported script "
                    "trains without "
                    "it",
                    shortened(type), usable ? "" : ", which has no factor"));
  }
  put("rope_scaling_type", type, "rope_scaling");
  if (factor || type == "llama3")
    put("rope_scaling_factor", factor.value_or(llama3_factor), "rope_scaling");
  const auto copy = [&](const char* ours, const char* theirs) {
    if (const auto value = inner.number(theirs, Dimension::count, 0, 1e9))
      put(ours, *value, "rope_scaling");
  };
  copy("rope_original_positions", "original_max_position_embeddings");
  if (const auto length =
          reader_.number("original_max_position_embeddings", Dimension::count, 1, 1e9);
      length && inner.optional("original_max_position_embeddings") == nullptr)
    put("rope_original_positions", *length, "original_max_position_embeddings");
  copy("rope_low_freq_factor", "low_freq_factor");
  copy("rope_high_freq_factor", "high_freq_factor");
  copy("rope_beta_fast", "beta_fast");
  copy("rope_beta_slow", "beta_slow");
  copy("rope_mscale", "mscale");
  copy("rope_mscale_all_dim", "mscale_all_dim");
  for (const char* theirs : {"attention_factor", "short_factor", "long_factor"}) {
    if (inner.optional(theirs) != nullptr)
      tell(fmt::format("{} of its rope_scaling is left out: there is no key for it", theirs));
  }
}

void HfTranslation::attention_pattern(std::string usual, std::int64_t layers) {
  const Value* types = reader_.optional("layer_types");
  if (types != nullptr) {
    usual.clear();
    for (const Value& word : types->items) usual += letter_of(word);
    if (static_cast<std::int64_t>(usual.size()) != layers) {
      throw ConfigError(
          types->mark,
          fmt::format("layer_types names {} layers, num_hidden_layers is {}", usual.size(), layers),
          "name the kind of every layer");
    }
  }
  put_pattern(usual, layers, "layer_types");
}

void HfTranslation::put_pattern(const std::string& letters, std::int64_t layers,
                                std::string_view hf_key) {
  std::string all;  // of a model of fewer layers, its own
  for (std::int64_t i = 0; i < layers; ++i)
    all += letters[static_cast<std::size_t>(i) % letters.size()];
  const std::string pattern = period(all);
  if (pattern != "F" && pattern != "S") put("attention_pattern", pattern, hf_key);
}

}  // namespace costmodel
