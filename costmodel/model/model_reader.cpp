#include "costmodel/model/model_reader.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "costmodel/base/escape.hpp"
#include "costmodel/config/map_reader.hpp"

namespace costmodel {

namespace {

// Applies a family default and records it in `assumed`, for keys that affect the result.
template <class T>
T or_assumed(std::optional<T> given, T usual, std::string_view key, const std::string& shown,
             ModelSpec& model) {
  if (given) return *given;
  model.assumed.push_back(fmt::format("{} {}", key, shown));
  return usual;
}

// Reads the keys of latent attention; returns true, and sets the head sizes, if there are any.
bool read_latent_attention(MapReader& reader, ModelSpec& model) {
  constexpr IntegerRange size{1, 65'536};
  const auto rank = reader.integer("kv_lora_rank", size);
  if (!rank) return false;
  model.kv_lora_rank = *rank;
  model.q_lora_rank = reader.integer("q_lora_rank", {0, 65'536}).value_or(0);
  model.qk_head_dim = or_assumed(reader.integer("qk_head_dim", size), std::int64_t{128},
                                 "qk_head_dim", "128", model);
  model.qk_pos_emb_head_dim = or_assumed(reader.integer("qk_pos_emb_head_dim", size),
                                         std::int64_t{64}, "qk_pos_emb_head_dim", "64", model);
  model.v_head_dim =
      or_assumed(reader.integer("v_head_dim", size), std::int64_t{128}, "v_head_dim", "128", model);
  model.head_dim = model.qk_head_dim + model.qk_pos_emb_head_dim;
  model.kv_heads = model.heads;
  return true;
}

void read_groups(MapReader& reader, ModelSpec& model) {
  constexpr IntegerRange size{1, 65'536};
  model.ssm_groups = reader.integer("ssm_groups", size).value_or(1);
  model.conv_kernel = reader.integer("conv_kernel", size).value_or(4);
  if (model.scan_heads() % model.ssm_groups != 0) {
    throw ConfigError(
        reader.mark_of("ssm_groups"),
        fmt::format("ssm_groups {} does not divide {} {}", model.ssm_groups,
                    model.layer_pattern.empty() ? "heads" : "mamba_heads", model.scan_heads()),
        "every group serves the same number of heads");
  }
}

// Reads the scan's sizes; the number of heads follows from an inner width of 2h, as in every
// published model.
void read_scan(MapReader& reader, ModelSpec& model) {
  constexpr IntegerRange size{1, 65'536};
  model.state_size = reader.integer("state_size", size).value_or(128);
  model.head_dim = reader.integer("head_dim", size).value_or(64);
  const std::int64_t usual = std::max<std::int64_t>(1, 2 * model.hidden / model.head_dim);
  model.heads = model.kv_heads = reader.integer("heads", {1, 100'000}).value_or(usual);
  read_groups(reader, model);
}

// Reads both stacks of an encoder-decoder model; a missing one is as deep as the other (T5: Raffel
// et al. 2020, arXiv:1910.10683, section 2.1).
void read_stacks(MapReader& reader, ModelSpec& model) {
  constexpr IntegerRange count{1, 100'000};
  const auto all = reader.integer("layers", {2, 200'000});
  const auto encoder = reader.integer("encoder_layers", count);
  const auto decoder = reader.integer("decoder_layers", count);
  if (!all && !encoder && !decoder) reader.required("encoder_layers");
  const auto other = [&](std::optional<std::int64_t> given) {
    return all && given ? *all - *given : all ? *all / 2 : given.value_or(0);
  };
  const auto settle = [&](std::optional<std::int64_t> own, std::optional<std::int64_t> given,
                          const char* key) {
    return or_assumed(own, other(given), key, fmt::format("{}", other(given)), model);
  };
  model.encoder_layers = settle(encoder, decoder, "encoder_layers");
  model.decoder_layers = settle(decoder, encoder, "decoder_layers");
  model.layers = model.encoder_layers + model.decoder_layers;
  const bool adds_up =
      !all || (*all == model.layers && std::min(model.encoder_layers, model.decoder_layers) > 0);
  if (!adds_up) {
    throw ConfigError(reader.mark_of("layers"),
                      fmt::format("layers {} is not encoder_layers {} + decoder_layers {}", *all,
                                  model.encoder_layers, model.decoder_layers),
                      "leave layers out: it is their sum");
  }
}

bool has_letter(const ModelSpec& model, char letter) {
  return model.layer_pattern.find(letter) != std::string::npos;
}

// Reads a hybrid's pattern, whose length is the number of layers, and the scan's sizes. The keys
// are Megatron's.
void read_pattern(MapReader& reader, ModelSpec& model) {
  reader.required("layer_pattern");
  model.layer_pattern = *reader.text("layer_pattern");
  const std::size_t wrong = model.layer_pattern.find_first_not_of("M*-E");
  if (wrong != std::string::npos || model.layer_pattern.empty()) {
    throw ConfigError(reader.mark_of("layer_pattern"),
                      model.layer_pattern.empty()
                          ? std::string("layer_pattern is empty")
                          : fmt::format("layer_pattern: {} at letter {} is none of M, *, - and E",
                                        quote(model.layer_pattern.substr(wrong, 1)), wrong + 1),
                      "one letter a layer: M a Mamba-2 scan, * attention, - an MLP, E experts");
  }
  model.layers = static_cast<std::int64_t>(model.layer_pattern.size());
  const auto told = reader.integer("layers", {1, 100'000});
  if (told && *told != model.layers) {
    throw ConfigError(
        reader.mark_of("layers"),
        fmt::format("layers {}, but layer_pattern has {} letters", *told, model.layers),
        "leave layers out: it is the pattern's length");
  }
  if (!has_letter(model, 'M')) return;
  constexpr IntegerRange size{1, 65'536};
  model.state_size = reader.integer("state_size", size).value_or(128);
  model.mamba_head_dim = reader.integer("mamba_head_dim", size).value_or(64);
  const std::int64_t usual = std::max<std::int64_t>(
      1, 2 * *reader.integer("hidden", {1, 4'194'304}) / model.mamba_head_dim);
  model.mamba_heads = or_assumed(reader.integer("mamba_heads", {1, 100'000}), usual, "mamba_heads",
                                 fmt::format("{}", usual), model);
  read_groups(reader, model);
}

void read_sizes(MapReader& reader, ModelSpec& model) {
  constexpr IntegerRange count{1, 100'000};
  constexpr IntegerRange width{1, 4'194'304};
  const bool two_stacks = model.kind == ModelKind::t5;
  if (two_stacks) {
    read_stacks(reader, model);
  } else if (model.kind == ModelKind::hybrid) {
    reader.required("hidden");
    read_pattern(reader, model);
  } else {
    reader.required("layers");
  }
  reader.required("hidden");
  if (model.kind == ModelKind::mamba) {
    model.layers = *reader.integer("layers", count);
    model.hidden = *reader.integer("hidden", width);
    return read_scan(reader, model);
  }
  reader.required("heads");
  if (model.layers == 0) model.layers = *reader.integer("layers", count);
  model.hidden = *reader.integer("hidden", width);
  model.heads = *reader.integer("heads", count);
  if (!two_stacks && read_latent_attention(reader, model)) return;
  // Every Llama 3, known by its vocabulary, shares 8 key/value heads (arXiv:2407.21783, table 3).
  constexpr std::int64_t llama3_vocab = 128'256, llama3_kv_heads = 8;
  const bool llama3 = model.kind == ModelKind::llama &&
                      reader.integer("vocab", {1, 100'000'000}) == llama3_vocab &&
                      model.heads % llama3_kv_heads == 0;
  const std::int64_t usual = llama3 ? llama3_kv_heads : model.heads;
  model.kv_heads = or_assumed(reader.integer("kv_heads", count), usual, "kv_heads",
                              fmt::format("{}", usual), model);
  if (model.heads % model.kv_heads != 0) {
    throw ConfigError(
        reader.mark_of("kv_heads"),
        fmt::format("kv_heads {} does not divide heads {}", model.kv_heads, model.heads),
        "every key/value head serves the same number of query heads");
  }
  const auto head_dim = reader.integer("head_dim", {1, 65'536});
  if (!head_dim && model.hidden % model.heads != 0) {
    throw ConfigError(
        reader.mark_of("hidden"),
        fmt::format("hidden {} is not divisible by heads {}", model.hidden, model.heads),
        "choose sizes that divide, or give head_dim");
  }
  model.head_dim = head_dim.value_or(model.hidden / model.heads);
}

// The llama family's usual choices: rotary positions, RMSNorm, gated SiLU, no biases, no dropout.
bool is_llama(const ModelSpec& model) {
  return model.kind != ModelKind::gpt && model.kind != ModelKind::t5;
}

// Nemotron-H's (arXiv:2504.03624, section 2.1): no positions, squared ReLU without a gate, RMSNorm,
// no biases, no dropout, embeddings not tied.
bool is_hybrid(const ModelSpec& model) { return model.kind == ModelKind::hybrid; }

// T5's (Raffel et al. 2020, section 2.1; transformers, T5Config): relative positions, a norm
// without bias, ReLU, no biases, dropout 0.1.
bool is_t5(const ModelSpec& model) { return model.kind == ModelKind::t5; }

// Nemotron-3 and 4, known by their activation, are gpt without biases and dropout and with rotary
// positions (arXiv:2402.16819, section 2; NVIDIA/NeMo r2.3.0, nemo/collections/llm/gpt/model/
// nemotron.py).
bool is_nemotron(const ModelSpec& model) {
  return model.activation == ActivationFunction::squared_relu;
}

void read_mlp(MapReader& reader, ModelSpec& model) {
  if (model.kind == ModelKind::mamba) return;
  const bool llama = is_llama(model) && !is_hybrid(model);
  auto ffn = reader.integer("ffn_hidden", {1, 16'777'216});
  // Where every layer has experts nothing else is as wide.
  if (!ffn && model.experts > 0 && model.moe_layers(0, model.layers) == model.layers)
    ffn = model.expert_ffn_hidden;
  // Touvron et al. 2023: two thirds of 4h, rounded up to 256.
  const std::int64_t usual = llama ? ceil_div(8 * model.hidden, 768) * 256 : 4 * model.hidden;
  model.ffn_hidden = or_assumed(ffn, usual, "ffn_hidden", fmt::format("{}", usual), model);
  model.gated_mlp =
      or_assumed(reader.boolean("gated_mlp"), llama, "gated_mlp", llama ? "true" : "false", model);
  const auto usual_activation =
      static_cast<std::size_t>(is_hybrid(model) ? ActivationFunction::squared_relu
                               : llama          ? ActivationFunction::silu
                               : is_t5(model)   ? ActivationFunction::relu
                                                : ActivationFunction::gelu);
  model.activation = static_cast<ActivationFunction>(
      reader.one_of("activation", activation_names).value_or(usual_activation));
}

// Before read_mlp: expert_ffn_hidden may stand for ffn_hidden, and the other way round.
void read_experts(MapReader& reader, ModelSpec& model) {
  if (model.kind != ModelKind::moe && !has_letter(model, 'E')) return;
  constexpr IntegerRange count{1, 100'000};
  reader.required("experts");
  reader.required("top_k");
  model.experts = *reader.integer("experts", count);
  model.top_k = *reader.integer("top_k", count);
  if (model.top_k > model.experts) {
    throw ConfigError(reader.mark_of("top_k"),
                      fmt::format("top_k {} exceeds the {} experts", model.top_k, model.experts),
                      "a token takes each expert once at most");
  }
  const auto width = reader.integer("expert_ffn_hidden", {1, 16'777'216});
  const auto dense_width = reader.integer("ffn_hidden", {1, 16'777'216});
  if (!width && !dense_width) reader.required("expert_ffn_hidden");
  model.expert_ffn_hidden = or_assumed(width, dense_width.value_or(0), "expert_ffn_hidden",
                                       fmt::format("{}", dense_width.value_or(0)), model);
  model.shared_experts = reader.integer("shared_experts", {0, 100'000}).value_or(0);
  if (!is_hybrid(model)) {  // whose pattern says where
    model.first_dense_layers = reader.integer("first_dense_layers", {0, model.layers}).value_or(0);
    model.moe_every = reader.integer("moe_every", count).value_or(1);
  }
  model.router_score =
      static_cast<RouterScore>(reader.one_of("router_score", router_score_names).value_or(0));
  model.router_bias = reader.boolean("router_bias").value_or(false);
  model.router_scaling = reader.number("router_scaling", Dimension::count, 1e-6, 1e6).value_or(1);
  model.expert_groups = reader.integer("expert_groups", {1, model.experts}).value_or(0);
  model.expert_groups_per_token =
      reader.integer("expert_groups_per_token", {1, std::max<std::int64_t>(1, model.expert_groups)})
          .value_or(model.expert_groups);
  model.mtp_layers = reader.integer("mtp_layers", {0, 100}).value_or(0);
  if (model.moe_layers(0, model.layers) == 0) {
    throw ConfigError(reader.mark_of("first_dense_layers"), "no layer has experts",
                      "lower first_dense_layers or moe_every");
  }
}

void read_positions(MapReader& reader, ModelSpec& model) {
  const bool llama = is_llama(model);
  const auto table = reader.integer("max_positions", {0, 1'000'000'000});
  const bool rotary = llama || is_nemotron(model);
  auto usual = static_cast<std::size_t>(rotary ? Positions::rotary : Positions::learned);
  if (model.kind == ModelKind::mamba) {
    model.positions = Positions::none;
    return;
  }
  if (is_t5(model)) {
    usual =
        static_cast<std::size_t>(table.value_or(0) > 0 ? Positions::learned : Positions::relative);
  } else if (is_hybrid(model)) {
    usual = static_cast<std::size_t>(Positions::none);
  } else if (table == 0) {
    usual = static_cast<std::size_t>(Positions::rotary);
  }
  model.positions =
      static_cast<Positions>(reader.one_of("positions", positions_names).value_or(usual));
  if (model.positions == Positions::relative && !is_t5(model)) {
    throw ConfigError(reader.mark_of("positions"),
                      "relative positions are modelled of kind t5 only",
                      "set positions: rotary, learned or alibi");
  }
  if (model.positions == Positions::rotary) {
    const auto read = [&](const char* key, double low, double high, double other) {
      return reader.number(key, Dimension::count, low, high).value_or(other);
    };
    model.rotary_base = read("rotary_base", 1, 1e12, model.rotary_base);
    model.rotary_percent = read("rotary_percent", 1e-3, 1, model.rotary_percent);
    model.rope_scaling_factor = read("rope_scaling_factor", 0, 1e4, model.rope_scaling_factor);
  }
  if (model.positions == Positions::learned) {
    model.max_positions = table.value_or(0);  // 0: as long as the sequence, settled by the scenario
  }
}

void read_rest(MapReader& reader, ModelSpec& model) {
  const bool llama = is_llama(model);
  const bool mamba = model.kind == ModelKind::mamba;
  constexpr std::int64_t t5_vocab = 32'128;  // transformers, T5Config
  const std::int64_t usual_vocab = mamba          ? 50'288
                                   : llama        ? 32'000
                                   : is_t5(model) ? t5_vocab
                                                  : 50'257;
  model.vocab = or_assumed(reader.integer("vocab", {1, 100'000'000}), usual_vocab, "vocab",
                           fmt::format("{}", usual_vocab), model);
  model.tie_embeddings = or_assumed(reader.boolean("tie_embeddings"), mamba || !llama,
                                    "tie_embeddings", mamba || !llama ? "true" : "false", model);
  const auto usual_norm = static_cast<std::size_t>(
      llama || is_t5(model) ? Normalization::rmsnorm : Normalization::layernorm);
  model.normalization = static_cast<Normalization>(
      reader.one_of("normalization", normalization_names).value_or(usual_norm));
  const bool plain = llama || is_nemotron(model);
  const bool biased = !plain && !is_t5(model);
  model.linear_bias = or_assumed(reader.boolean("linear_bias"), biased, "linear_bias",
                                 biased ? "true" : "false", model);
  model.qkv_bias = reader.boolean("qkv_bias").value_or(model.linear_bias);
  if (model.latent_attention() && (model.linear_bias || model.qkv_bias)) {
    throw ConfigError(reader.mark_of("kv_lora_rank"), "latent attention has no biases",
                      "set linear_bias: false");
  }
  if (!is_t5(model)) {
    model.qk_norm = reader.boolean("qk_norm").value_or(false);
    model.embedding_norm = reader.boolean("embedding_norm").value_or(false);
    model.parallel_block = reader.boolean("parallel_block").value_or(false);
  }
  model.dropout = or_assumed(reader.number("dropout", Dimension::count, 0, 0.99), plain ? 0 : 0.1,
                             "dropout", plain ? "0" : "0.1", model);
  model.published_parameters = reader.number("published_parameters", Dimension::count, 1, 1e18);
  reader.text("published_note");
  model.source = reader.text("source").value_or("");
  model.title = reader.text("title").value_or(model.name);
}

}  // namespace

ModelSpec read_model(const Value& map, const std::string& name) {
  MapReader reader(map, name.empty() ? "model" : "model " + quote(name));
  ModelSpec model;
  model.name = name;
  reader.required("kind");
  model.kind = static_cast<ModelKind>(*reader.one_of("kind", model_kind_names));
  read_sizes(reader, model);
  read_experts(reader, model);
  read_mlp(reader, model);
  read_positions(reader, model);
  read_rest(reader, model);
  reader.finish();
  return model;
}

namespace {

void put_experts(const ModelSpec& m, Value& map) {
  if (m.experts == 0) return;
  const auto put = [&map](const std::string& key, std::int64_t value) {
    map.set(key, scalar_value(fmt::format("{}", value)));
  };
  put("experts", m.experts);
  put("top_k", m.top_k);
  put("expert_ffn_hidden", m.expert_ffn_hidden);
  put("shared_experts", m.shared_experts);
  if (m.layer_pattern.empty()) {
    put("first_dense_layers", m.first_dense_layers);
    put("moe_every", m.moe_every);
  }
  if (m.expert_groups > 0) {
    put("expert_groups", m.expert_groups);
    put("expert_groups_per_token", m.expert_groups_per_token);
  }
  if (m.mtp_layers > 0) put("mtp_layers", m.mtp_layers);
  const auto word = router_score_names[static_cast<std::size_t>(m.router_score)];
  if (m.router_score != RouterScore::softmax)
    map.set("router_score", scalar_value(std::string(word)));
  if (m.router_bias) map.set("router_bias", scalar_value("true"));
  if (m.router_scaling != 1)
    map.set("router_scaling", scalar_value(fmt::format("{}", m.router_scaling)));
}

}  // namespace

Value to_value(const ModelSpec& m) {
  Value map;
  const auto put = [&map](const std::string& key, const auto& value) {
    map.set(key, scalar_value(fmt::format("{}", value)));
  };
  put("kind", model_kind_names[static_cast<std::size_t>(m.kind)]);
  const bool hybrid = !m.layer_pattern.empty(), attends = m.state_size == 0 || hybrid;
  if (hybrid) {
    put("layer_pattern", m.layer_pattern);
  } else if (m.encoder_decoder()) {
    put("encoder_layers", m.encoder_layers);
    put("decoder_layers", m.decoder_layers);
  } else {
    put("layers", m.layers);
  }
  put("hidden", m.hidden);
  put("heads", m.heads);
  if (m.latent_attention()) {
    put("q_lora_rank", m.q_lora_rank);
    put("kv_lora_rank", m.kv_lora_rank);
    put("qk_head_dim", m.qk_head_dim);
    put("qk_pos_emb_head_dim", m.qk_pos_emb_head_dim);
    put("v_head_dim", m.v_head_dim);
  } else {
    if (attends) put("kv_heads", m.kv_heads);
    put("head_dim", m.head_dim);
  }
  if (m.state_size > 0) {
    put("state_size", m.state_size);
    put("ssm_groups", m.ssm_groups);
    put("conv_kernel", m.conv_kernel);
    if (hybrid) put("mamba_heads", m.mamba_heads);
    if (hybrid) put("mamba_head_dim", m.mamba_head_dim);
  }
  if (attends) {
    put("ffn_hidden", m.ffn_hidden);
    put("gated_mlp", m.gated_mlp);
  }
  put_experts(m, map);
  if (attends) put("activation", activation_names[static_cast<std::size_t>(m.activation)]);
  put("vocab", m.vocab);
  put("tie_embeddings", m.tie_embeddings);
  if (attends) {
    put("positions", positions_names[static_cast<std::size_t>(m.positions)]);
    put("max_positions", m.max_positions);
    if (m.rotary_base != 10'000) put("rotary_base", m.rotary_base);
    if (m.rotary_percent != 1) put("rotary_percent", m.rotary_percent);
    if (m.rope_scaling_factor > 0) put("rope_scaling_factor", m.rope_scaling_factor);
  }
  put("normalization", normalization_names[static_cast<std::size_t>(m.normalization)]);
  put("linear_bias", m.linear_bias);
  put("qkv_bias", m.qkv_bias);
  if (m.qk_norm) put("qk_norm", true);
  if (m.embedding_norm) put("embedding_norm", true);
  if (m.parallel_block) put("parallel_block", true);
  put("dropout", m.dropout);
  if (!m.source.empty()) put("source", m.source);
  return map;
}

}  // namespace costmodel
