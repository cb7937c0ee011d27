#include "costmodel/model/model_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <vector>

#include "costmodel/base/escape.hpp"
#include "costmodel/config/map_reader.hpp"
#include "costmodel/model/model_keys.hpp"
#include "costmodel/model/tower_reader.hpp"

namespace costmodel {

namespace {

bool has_letter(const std::string& pattern, char letter) {
  return pattern.find(letter) != std::string::npos;
}

bool has(const ModelSpec& model, Mixer mixer) {
  const std::vector<Block> blocks = model.blocks();
  return std::ranges::find(blocks, mixer, &Block::mixer) != blocks.end();
}

// Refuses the first letter of a pattern that is none of `known`.
void check_letters(const MapReader& reader, const char* key, const std::string& pattern,
                   const std::string& known, const std::string& help) {
  const std::size_t wrong = pattern.find_first_not_of(known);
  if (wrong == std::string::npos) return;
  throw ConfigError(reader.mark_of(key),
                    fmt::format("{}: {} at letter {} is none of {}", key,
                                quote(pattern.substr(wrong, 1)), wrong + 1, known),
                    "one letter a layer: " + help);
}

// Reads the keys of latent attention; returns true, and sets the head sizes, if there are any.
bool read_latent_attention(MapReader& reader, ModelSpec& model) {
  read_part(reader, ModelPart::latent_rank, model);
  if (!model.latent_attention()) return false;
  read_part(reader, ModelPart::latent_sizes, model);
  read_part(reader, ModelPart::value_size, model);
  constexpr std::int64_t usual_value = 128;  // DeepSeek-V2's
  assume(&ModelSpec::v_head_dim, usual_value, "v_head_dim", model);
  model.head_dim = model.qk_head_dim + model.qk_pos_emb_head_dim;
  model.kv_heads = model.heads;
  return true;
}

void read_scan(MapReader& reader, ModelSpec& model) {
  read_part(reader, ModelPart::scan, model);
  read_part(reader, ModelPart::convolution, model);
  const bool alone = model.kind == ModelKind::mamba;
  if (model.dt_rank > 0 && (alone ? model.head_dim != 1 : !model.layer_pattern.empty())) {
    throw ConfigError(reader.mark_of("dt_rank"),
                      "dt_rank is Mamba-1's, whose heads are single channels",
                      "set kind: mamba and head_dim: 1, or leave dt_rank out");
  }
  if (model.scan_heads() % model.ssm_groups != 0) {
    throw ConfigError(reader.mark_of("ssm_groups"),
                      fmt::format("ssm_groups {} does not divide {} {}", model.ssm_groups,
                                  alone ? "heads" : "mamba_heads", model.scan_heads()),
                      "every group serves the same number of heads");
  }
}

// Reads the sizes of a model of scans alone; the number of heads follows from an inner width of
// 2h, as in every published model.
void read_mamba(MapReader& reader, ModelSpec& model) {
  read_part(reader, ModelPart::state, model);
  read_part(reader, ModelPart::head_dim, model);
  if (model.head_dim == 0) model.head_dim = 64;
  read_part(reader, ModelPart::heads, model);
  if (model.heads == 0) model.heads = std::max<std::int64_t>(1, 2 * model.hidden / model.head_dim);
  model.kv_heads = model.heads;
  read_scan(reader, model);
}

// Reads both stacks of an encoder-decoder model; a missing one is as deep as the other (T5: Raffel
// et al. 2020, arXiv:1910.10683, section 2.1).
void read_stacks(MapReader& reader, ModelSpec& model) {
  const auto all = reader.integer("layers", {2, 2 * layer_counts.most});  // of both
  read_part(reader, ModelPart::stacks, model);
  const std::int64_t encoder = model.encoder_layers, decoder = model.decoder_layers;
  if (!all && encoder == 0 && decoder == 0) reader.required("encoder_layers");
  const auto other = [&](std::int64_t given) {
    return all && given > 0 ? *all - given : all ? *all / 2 : given;
  };
  assume(&ModelSpec::encoder_layers, other(decoder), "encoder_layers", model);
  assume(&ModelSpec::decoder_layers, other(encoder), "decoder_layers", model);
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

// Of a model that has attention too.
void read_scan_and_size(MapReader& reader, ModelSpec& model) {
  read_part(reader, ModelPart::state, model);
  read_part(reader, ModelPart::pattern_scan, model);
  read_scan(reader, model);
}

void read_delta_net(MapReader& reader, ModelSpec& model) {
  read_part(reader, ModelPart::delta_net, model);
  if (!has(model, Mixer::scan)) read_part(reader, ModelPart::convolution, model);
  if (model.linear_num_value_heads % model.linear_num_key_heads != 0) {
    throw ConfigError(
        reader.mark_of_any({"linear_num_key_heads", "linear_num_value_heads"}),
        fmt::format("linear_num_key_heads {} does not divide linear_num_value_heads {}",
                    model.linear_num_key_heads, model.linear_num_value_heads),
        "every key head serves the same number of value heads");
  }
}

// Whether the sizes that a mixer needs are given, and no mixer lacks them.
void check_confined(MapReader& reader, const ModelSpec& model, Mixer mixer, std::int64_t tokens,
                    const char* key) {
  const bool used = has(model, mixer);
  if (used && tokens == 0) {
    reader.required(key);
    throw ConfigError(reader.mark_of(key), fmt::format("{} is 0, which is none", key),
                      fmt::format("give its tokens, or write F for {}", row_of(mixer).letter));
  }
  const char letter = row_of(mixer).letter;
  if (!used && !model.attention_pattern.empty() && tokens > 0) {
    throw ConfigError(
        reader.mark_of("attention_pattern"),
        fmt::format("no layer of attention_pattern has the {}", key),
        fmt::format("write {} for the layers that have it, or leave {} out", letter, key));
  }
}

// Reads what layers with a window have of their own.
void read_windowed(MapReader& reader, ModelSpec& model) {
  read_part(reader, ModelPart::windowed, model);
  if (!model.windows_differ()) return;
  if (!has(model, Mixer::window)) {
    throw ConfigError(reader.mark_of_any({"window_heads", "window_kv_heads", "window_head_dim",
                                          "window_sinks", "keys_as_values"}),
                      "window_heads, window_kv_heads, window_head_dim, window_sinks and "
                      "keys_as_values are of a model in which some layers have a window",
                      "write S for these layers, or leave the keys out");
  }
  const ModelSpec windowed = model.as_windowed();
  if (windowed.heads % windowed.kv_heads != 0) {
    throw ConfigError(reader.mark_of_any({"window_kv_heads", "window_heads"}),
                      fmt::format("window_kv_heads {} does not divide heads {}", windowed.kv_heads,
                                  windowed.heads),
                      "every key/value head serves the same number of query heads");
  }
}

// Reads the mixers of the layers, and the sizes of those that are there.
void read_attention_pattern(MapReader& reader, ModelSpec& model) {
  read_part(reader, ModelPart::window, model);
  const std::string& pattern = model.attention_pattern;
  const Mark mark = reader.mark_of("attention_pattern");
  check_letters(reader, "attention_pattern", pattern, attention_letters(),
                attention_letters_help());
  if (static_cast<std::int64_t>(pattern.size()) > model.layers) {
    throw ConfigError(mark,
                      fmt::format("attention_pattern has {} letters, the model {} layers",
                                  pattern.size(), model.layers),
                      "write one letter a layer at most: it is repeated");
  }
  constexpr std::size_t most_mixers = most_blocks / 2;  // each with an MLP and with experts
  if (std::set(pattern.begin(), pattern.end()).size() > most_mixers) {
    throw ConfigError(mark, fmt::format("attention_pattern has more than {} kinds", most_mixers),
                      "a model has few kinds of layers");
  }
  check_confined(reader, model, Mixer::window, model.sliding_window, "sliding_window");
  check_confined(reader, model, Mixer::chunked, model.attention_chunk, "attention_chunk");
  read_windowed(reader, model);
  if (has(model, Mixer::scan) || has(model, Mixer::parallel)) read_scan_and_size(reader, model);
  if (has(model, Mixer::delta) || has(model, Mixer::kimi_delta)) read_delta_net(reader, model);
  if (has(model, Mixer::short_conv)) read_part(reader, ModelPart::convolution, model);
  if (has(model, Mixer::rwkv)) {
    read_part(reader, ModelPart::rwkv, model);
    if (model.query_size() != model.hidden) {
      throw ConfigError(mark,
                        fmt::format("RWKV-7's heads together have {} columns, hidden is {}",
                                    model.query_size(), model.hidden),
                        "choose heads and head_dim whose product is hidden");
    }
  }
  if (!has(model, Mixer::sparse)) return;
  read_part(reader, ModelPart::indexer, model);
  if (model.q_lora_rank == 0) {
    throw ConfigError(mark, "sparse attention is latent attention with a latent for its queries",
                      "give kv_lora_rank and q_lora_rank, or write F for I");
  }
}

// Reads a hybrid's pattern, whose length is the number of layers, and the scan's sizes. The keys
// are Megatron's.
void read_pattern(MapReader& reader, ModelSpec& model) {
  read_part(reader, ModelPart::hidden, model);  // from which the scans take their size
  read_part(reader, ModelPart::pattern, model);
  std::string known;
  for (const PatternLetter& row : pattern_letters()) known += row.letter;
  if (model.layer_pattern.empty()) {
    throw ConfigError(reader.mark_of("layer_pattern"), "layer_pattern is empty",
                      "one letter a layer: " + pattern_letters_help());
  }
  check_letters(reader, "layer_pattern", model.layer_pattern, known, pattern_letters_help());
  const auto letters = static_cast<std::int64_t>(model.layer_pattern.size());
  model.layers = letters;
  read_part(reader, ModelPart::layers, model);
  if (model.layers != letters) {
    throw ConfigError(
        reader.mark_of_any({"layers", "layer_pattern"}),
        fmt::format("layers {}, but layer_pattern has {} letters", model.layers, letters),
        "leave layers out: it is the pattern's length");
  }
  if (has(model, Mixer::delta)) read_delta_net(reader, model);
  if (has(model, Mixer::scan)) read_scan_and_size(reader, model);
}

void read_layers(MapReader& reader, ModelSpec& model) {
  switch (model.kind) {
    case ModelKind::t5: read_stacks(reader, model); return;
    case ModelKind::hybrid: read_pattern(reader, model); return;
    case ModelKind::gpt:
    case ModelKind::llama:
    case ModelKind::moe:
    case ModelKind::mamba:
      reader.required("layers");
      read_part(reader, ModelPart::layers, model);
      return;
  }
}

void read_attention(MapReader& reader, ModelSpec& model) {
  reader.required("heads");
  read_part(reader, ModelPart::heads, model);
  if (model.kind != ModelKind::t5 && read_latent_attention(reader, model)) return;
  read_part(reader, ModelPart::kv_heads, model);
  if (model.heads % model.kv_heads != 0) {
    throw ConfigError(
        reader.mark_of_any({"kv_heads", "heads"}),
        fmt::format("kv_heads {} does not divide heads {}", model.kv_heads, model.heads),
        "every key/value head serves the same number of query heads");
  }
  const ModelSpec own = model.as_decoder();
  if (own.heads % own.kv_heads != 0) {
    throw ConfigError(
        reader.mark_of_any({"decoder_heads", "kv_heads"}),
        fmt::format("kv_heads {} does not divide decoder_heads {}", own.kv_heads, own.heads),
        "choose decoder_heads as a multiple of kv_heads");
  }
  read_part(reader, ModelPart::head_dim, model);
  if (model.head_dim == 0 && model.hidden % model.heads != 0) {
    throw ConfigError(
        reader.mark_of_any({"hidden", "heads"}),
        fmt::format("hidden {} is not divisible by heads {}", model.hidden, model.heads),
        "choose sizes that divide, or give head_dim");
  }
  if (model.head_dim == 0) model.head_dim = model.hidden / model.heads;
  if (model.kind != ModelKind::t5) read_part(reader, ModelPart::value_size, model);
}

// An MLP is as wide as an expert, or an expert as an MLP, where only one of them is written.
void read_experts(MapReader& reader, ModelSpec& model) {
  if (model.kind != ModelKind::moe && !has_letter(model.layer_pattern, 'E')) return;
  read_part(reader, ModelPart::experts, model);
  if (model.top_k > model.experts) {
    throw ConfigError(reader.mark_of_any({"top_k", "experts"}),
                      fmt::format("top_k {} exceeds the {} experts", model.top_k, model.experts),
                      "a token takes each expert once at most");
  }
  if (model.expert_ffn_hidden == 0 && model.ffn_hidden == 0) reader.required("expert_ffn_hidden");
  assume(&ModelSpec::expert_ffn_hidden, model.ffn_hidden, "expert_ffn_hidden", model);
  if (model.kind != ModelKind::hybrid) read_part(reader, ModelPart::expert_layers, model);
  read_part(reader, ModelPart::router, model);
  const std::int64_t sparse = model.moe_layers(0, model.layers);
  if (sparse == 0) {
    throw ConfigError(reader.mark_of_any({"first_dense_layers", "moe_every", "layers"}),
                      "no layer has experts", "lower first_dense_layers or moe_every");
  }
  if (sparse == model.layers && model.ffn_hidden == 0) model.ffn_hidden = model.expert_ffn_hidden;
}

void read_positions(MapReader& reader, ModelSpec& model) {
  read_part(reader, ModelPart::position_table, model);
  const std::int64_t table = std::max<std::int64_t>(0, model.max_positions);
  if (model.kind == ModelKind::mamba) {
    model.positions = Positions::none;
  } else {
    read_part(reader, ModelPart::positions, model);
  }
  if (model.positions == Positions::relative && model.kind != ModelKind::t5) {
    throw ConfigError(reader.mark_of("positions"),
                      "relative positions are modelled of kind t5 only",
                      "set positions: rotary, learned or alibi");
  }
  if (model.positions == Positions::rotary) {
    read_part(reader, ModelPart::rotary, model);
    const bool stretched = model.rope_scaling != RopeScaling::none,
               listed = model.rope_scaling == RopeScaling::longrope;  // by its lists of factors
    if (!listed && stretched != (model.rope_scaling_factor > 0)) {
      throw ConfigError(reader.mark_of("rope_scaling_type"),
                        "rope_scaling_type and rope_scaling_factor go together",
                        "give both, or leave both out");
    }
  }
  // Of a learned table 0 is as long as the sequence, settled by the scenario.
  model.max_positions = model.positions == Positions::learned ? table : 0;
}

// What goes together with what.
void check_block(const MapReader& reader, const ModelSpec& m) {
  const auto refuse = [&](bool fault, const char* key, const char* reason, const char* remedy) {
    if (fault) throw ConfigError(reader.mark_of(key), reason, remedy);
  };
  const bool plain = m.kind == ModelKind::gpt || m.kind == ModelKind::llama ||
                     m.kind == ModelKind::moe;  // layers of attention and MLP or experts
  refuse(!plain && m.norm_placement != NormPlacement::before, "norm_placement",
         "norm_placement is of kinds gpt, llama and moe", "leave it out");
  refuse(!plain && (!m.causal || m.head_transform || m.pooler || m.token_types > 0), "kind",
         "a bidirectional encoder is of kind gpt", "set kind: gpt");
  refuse(m.parallel_block && m.norm_placement != NormPlacement::before, "norm_placement",
         "a parallel block has its norms before it", "set norm_placement: before");
  refuse(m.shared_norm && !m.parallel_block, "shared_norm", "shared_norm without parallel_block",
         "set parallel_block: true, or leave shared_norm out");
  refuse(m.parallel_block && m.kind == ModelKind::moe, "parallel_block",
         "experts in a parallel block are not modelled", "set parallel_block: false");
  refuse(m.qk_norm_whole && !m.qk_norm, "qk_norm_whole", "qk_norm_whole without qk_norm",
         "set qk_norm: true");
  refuse(!m.qk_norm_gains && !m.qk_norm, "qk_norm_gains", "qk_norm_gains without qk_norm",
         "set qk_norm: true, or leave qk_norm_gains out");
  refuse(!m.causal && (m.attention_chunk > 0 || m.recurrent()), "causal",
         "only full attention is modelled without a mask", "leave attention_pattern out");
  refuse(
      m.norm_placement != NormPlacement::before && m.recurrent() && m.linear_num_value_heads == 0,
      "norm_placement", "norms of a scan's results are not modelled", "set norm_placement: before");
  refuse(m.parallel_block && m.recurrent(), "parallel_block",
         "a recurrence in a parallel block is not modelled", "set parallel_block: false");
  refuse(m.attention_gate && m.head_gate, "head_gate", "attention_gate gates each head's columns",
         "leave one of them out");
  refuse(m.latent_attention() && (m.gate_size() > 0 || m.sliding_window > 0 || m.attention_sinks ||
                                  m.attention_chunk > 0),
         "kv_lora_rank", "latent attention with a window, a gate or sinks is not modelled",
         "leave them out");
  refuse(m.v_head_dim > 0 && m.attention_gate, "attention_gate",
         "a gate of attention whose values have another size is not modelled",
         "leave v_head_dim or attention_gate out");
  refuse(m.head_gate && m.encoder_decoder(), "head_gate",
         "gates of an encoder's and a decoder's heads are not modelled", "leave it out");
  refuse(m.v_head_dim > 0 && m.keys_as_values, "v_head_dim",
         "values that are the keys' have their size", "leave v_head_dim or keys_as_values out");
  refuse(!m.causal && m.sliding_window > 0, "sliding_window",
         "a window of attention without a mask is not modelled", "leave sliding_window out");
  refuse(!m.final_norm() && m.mtp_layers > 0, "mtp_layers",
         "multi-token prediction after a norm_placement of after is not modelled",
         "set mtp_layers: 0");
}

void read_rest(MapReader& reader, ModelSpec& model) {
  assume(&ModelSpec::vocab, usual_vocab(model), "vocab", model);
  read_part(reader, ModelPart::norms_and_biases, model);
  if (model.latent_attention() && (model.linear_bias || model.qkv_bias)) {
    throw ConfigError(reader.mark_of("kv_lora_rank"), "latent attention has no biases",
                      "set linear_bias: false");
  }
  if (model.kind != ModelKind::t5) read_part(reader, ModelPart::block, model);
  check_block(reader, model);
  read_part(reader, ModelPart::last, model);
}

}  // namespace

ModelSpec read_model(const Value& map, const std::string& name) {
  MapReader reader(map, name.empty() ? "model" : "model " + quote(name));
  ModelSpec model;
  model.name = model.title = name;
  const auto read = [&](ModelPart part) { read_part(reader, part, model); };
  read(ModelPart::kind);
  read_layers(reader, model);
  read(ModelPart::hidden);
  read(ModelPart::vocab);
  if (model.kind == ModelKind::mamba) {
    read_mamba(reader, model);
  } else {
    read_attention(reader, model);
    if (model.kind != ModelKind::t5 && model.kind != ModelKind::hybrid)
      read_attention_pattern(reader, model);
    read(ModelPart::ffn);
    read_experts(reader, model);
    assume(&ModelSpec::ffn_hidden, usual_ffn(model), "ffn_hidden", model);
    read(ModelPart::mlp);
  }
  read_positions(reader, model);
  read_rest(reader, model);
  read_towers(reader, read_model, model_key_names(), model);
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
  if (m.shared_expert_gate) map.set("shared_expert_gate", scalar_value("true"));
  if (m.expert_norms) map.set("expert_norms", scalar_value("true"));
  if (m.moe_latent_size > 0) put("moe_latent_size", m.moe_latent_size);
  if (m.layer_pattern.empty()) {
    put("first_dense_layers", m.first_dense_layers);
    put("moe_every", m.moe_every);
    if (m.moe_offset > 0) put("moe_offset", m.moe_offset);
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

void put_pattern(const ModelSpec& m, Value& map) {
  const auto put = [&map](const std::string& key, const auto& value) {
    map.set(key, scalar_value(fmt::format("{}", value)));
  };
  if (m.sliding_window > 0) put("sliding_window", m.sliding_window);
  if (!m.attention_pattern.empty()) put("attention_pattern", m.attention_pattern);
  if (m.attention_chunk > 0) put("attention_chunk", m.attention_chunk);
  if (m.window_heads > 0) put("window_heads", m.window_heads);
  if (m.window_kv_heads > 0) put("window_kv_heads", m.window_kv_heads);
  if (m.window_head_dim > 0) put("window_head_dim", m.window_head_dim);
  if (m.window_sinks) put("window_sinks", true);
  if (m.keys_as_values) put("keys_as_values", true);
  if (m.index_heads > 0) {
    put("index_heads", m.index_heads);
    put("index_head_dim", m.index_head_dim);
    put("index_topk", m.index_topk);
  }
  if (m.rwkv_decay_rank > 0) {
    put("rwkv_decay_rank", m.rwkv_decay_rank);
    put("rwkv_rate_rank", m.rwkv_rate_rank);
    put("rwkv_value_rank", m.rwkv_value_rank);
    put("rwkv_gate_rank", m.rwkv_gate_rank);
  }
  const bool convolves = has_letter(m.attention_pattern, row_of(Mixer::short_conv).letter);
  if ((convolves || m.linear_num_value_heads > 0) && m.state_size == 0)
    put("conv_kernel", m.conv_kernel);
  if (m.linear_num_value_heads == 0) return;
  put("linear_num_key_heads", m.linear_num_key_heads);
  put("linear_num_value_heads", m.linear_num_value_heads);
  put("linear_key_head_dim", m.linear_key_head_dim);
  put("linear_value_head_dim", m.linear_value_head_dim);
}

void put_scan(const ModelSpec& m, Value& map) {
  if (m.state_size == 0) return;
  const auto put = [&map](const char* key, std::int64_t value) {
    map.set(key, scalar_value(fmt::format("{}", value)));
  };
  put("state_size", m.state_size);
  put("ssm_groups", m.ssm_groups);
  put("conv_kernel", m.conv_kernel);
  if (m.dt_rank > 0) put("dt_rank", m.dt_rank);
  if (m.scan_norms) map.set("scan_norms", scalar_value("true"));
  if (!m.scan_output_norm) map.set("scan_output_norm", scalar_value("false"));
  if (m.kind == ModelKind::mamba) return;
  put("mamba_heads", m.mamba_heads);
  put("mamba_head_dim", m.mamba_head_dim);
}

// A number that is not `usual`.
void put_number(Value& map, const std::string& key, double value, double usual = 0) {
  if (value != usual) map.set(key, scalar_value(fmt::format("{}", value)));
}

void put_rope(const ModelSpec& m, Value& map) {
  put_number(map, "rotary_base", m.rotary_base, 10'000);
  put_number(map, "rotary_percent", m.rotary_percent, 1);
  put_number(map, "rope_scaling_factor", m.rope_scaling_factor);
  if (m.rope_scaling != RopeScaling::none) {
    const auto word = rope_scaling_names[static_cast<std::size_t>(m.rope_scaling)];
    map.set("rope_scaling_type", scalar_value(std::string(word)));
  }
  put_number(map, "rope_original_positions", static_cast<double>(m.rope_original_positions));
  if (m.rope_scaling == RopeScaling::llama3) {
    put_number(map, "rope_low_freq_factor", m.rope_low_freq_factor);
    put_number(map, "rope_high_freq_factor", m.rope_high_freq_factor);
  }
  if (m.rope_scaling != RopeScaling::yarn) return;
  put_number(map, "rope_beta_fast", m.rope_beta_fast);
  put_number(map, "rope_beta_slow", m.rope_beta_slow);
  put_number(map, "rope_mscale", m.rope_mscale);
  put_number(map, "rope_mscale_all_dim", m.rope_mscale_all_dim);
}

void put_numbers(const ModelSpec& m, Value& map) {
  put_number(map, "norm_epsilon", m.norm_epsilon);
  if (m.layernorm_1p) map.set("layernorm_1p", scalar_value("true"));
  for (const ModelNumber& n : model_numbers())
    put_number(map, std::string(n.name), m.*n.field, n.usual);
}

// What few models have.
void put_block(const ModelSpec& m, Value& map) {
  const auto flag = [&map](const std::string& key, bool value) {
    if (value) map.set(key, scalar_value("true"));
  };
  flag("qk_norm", m.qk_norm);
  flag("qk_norm_whole", m.qk_norm_whole);
  if (!m.qk_norm_gains) map.set("qk_norm_gains", scalar_value("false"));
  if (m.norm_placement != NormPlacement::before) {
    const auto word = norm_placement_names[static_cast<std::size_t>(m.norm_placement)];
    map.set("norm_placement", scalar_value(std::string(word)));
  }
  flag("attention_gate", m.attention_gate);
  flag("head_gate", m.head_gate);
  flag("attention_sinks", m.attention_sinks);
  flag("embedding_norm", m.embedding_norm);
  if (m.embedding_dim > 0)
    map.set("embedding_dim", scalar_value(fmt::format("{}", m.embedding_dim)));
  flag("parallel_block", m.parallel_block);
  flag("shared_norm", m.shared_norm);
  if (!m.causal) map.set("causal", scalar_value("false"));
  if (m.token_types > 0) map.set("token_types", scalar_value(fmt::format("{}", m.token_types)));
  flag("head_transform", m.head_transform);
  flag("pooler", m.pooler);
}

}  // namespace

Value to_value(const ModelSpec& m) {
  Value map;
  const auto put = [&map](const std::string& key, const auto& value) {
    map.set(key, scalar_value(fmt::format("{}", value)));
  };
  put("kind", model_kind_names[static_cast<std::size_t>(m.kind)]);
  const bool hybrid = !m.layer_pattern.empty(), attends = m.kind != ModelKind::mamba;
  if (hybrid) {
    put("layer_pattern", m.layer_pattern);
  } else if (m.encoder_decoder()) {
    put("encoder_layers", m.encoder_layers);
    put("decoder_layers", m.decoder_layers);
    if (m.decoder_heads > 0) put("decoder_heads", m.decoder_heads);
    if (m.decoder_ffn_hidden > 0) put("decoder_ffn_hidden", m.decoder_ffn_hidden);
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
    if (m.v_head_dim > 0) put("v_head_dim", m.v_head_dim);
  }
  put_scan(m, map);
  put_pattern(m, map);
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
    put_rope(m, map);
  }
  put("normalization", normalization_names[static_cast<std::size_t>(m.normalization)]);
  put("linear_bias", m.linear_bias);
  put("qkv_bias", m.qkv_bias);
  put_block(m, map);
  put_numbers(m, map);
  put("dropout", m.dropout);
  put_towers(m, to_value, map);
  if (m.context_length > 0) put("context_length", m.context_length);
  if (m.checkpoint != CheckpointFormat::bf16)
    put("checkpoint", checkpoint_names[static_cast<std::size_t>(m.checkpoint)]);
  if (m.unquantized_attention) put("unquantized_attention", true);
  if (m.unquantized_dense) put("unquantized_dense", true);
  if (m.unquantized_layers > 0) put("unquantized_layers", m.unquantized_layers);
  if (!m.source.empty()) put("source", m.source);
  return map;
}

}  // namespace costmodel
