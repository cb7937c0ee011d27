#include "costmodel/model_spec.hpp"

#include <fmt/format.h>

#include "costmodel/config_reader.hpp"

namespace costmodel {

namespace {

double norm_parameters(const ModelSpec& model, double width) {
  return model.normalization == Normalization::layernorm ? 2 * width : width;
}

// Applies a family default and records it, for keys whose value changes the answer.
template <class T>
T or_assumed(std::optional<T> given, T usual, std::string_view key, const std::string& shown,
             ModelSpec& model) {
  if (given) return *given;
  model.assumed.push_back(fmt::format("{} {}", key, shown));
  return usual;
}

void reject_later_kinds(MapReader& reader) {
  static constexpr std::array<std::string_view, 3> later{"moe", "t5", "mamba"};
  const auto kind = reader.text("kind");
  for (auto name : later) {
    if (kind == name) {
      throw ConfigError(reader.mark_of("kind"),
                        fmt::format("kind '{}' has no operators in this version", name),
                        "allowed: gpt, llama");
    }
  }
}

void read_sizes(MapReader& reader, ModelSpec& model) {
  constexpr IntegerRange count{1, 100'000};
  constexpr IntegerRange width{1, 4'194'304};
  reader.required("layers");
  reader.required("hidden");
  reader.required("heads");
  model.layers = *reader.integer("layers", count);
  model.hidden = *reader.integer("hidden", width);
  model.heads = *reader.integer("heads", count);
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

void read_mlp(MapReader& reader, ModelSpec& model) {
  const bool llama = model.kind == ModelKind::llama;
  const auto ffn = reader.integer("ffn_hidden", {1, 16'777'216});
  // Touvron et al. 2023: two thirds of 4h, rounded up to 256.
  const std::int64_t usual = llama ? ceil_div(8 * model.hidden, 768) * 256 : 4 * model.hidden;
  model.ffn_hidden = or_assumed(ffn, usual, "ffn_hidden", fmt::format("{}", usual), model);
  model.gated_mlp =
      or_assumed(reader.boolean("gated_mlp"), llama, "gated_mlp", llama ? "true" : "false", model);
  const auto usual_activation =
      static_cast<std::size_t>(llama ? ActivationFunction::silu : ActivationFunction::gelu);
  model.activation = static_cast<ActivationFunction>(
      reader.one_of("activation", activation_names).value_or(usual_activation));
}

void read_positions(MapReader& reader, ModelSpec& model) {
  const bool llama = model.kind == ModelKind::llama;
  const auto table = reader.integer("max_positions", {0, 1'000'000'000});
  auto usual = static_cast<std::size_t>(llama ? Positions::rotary : Positions::learned);
  if (table == 0) usual = static_cast<std::size_t>(Positions::rotary);
  model.positions =
      static_cast<Positions>(reader.one_of("positions", positions_names).value_or(usual));
  if (model.positions == Positions::learned) {
    model.max_positions = table.value_or(0);  // 0: as long as the sequence, settled by the scenario
  }
}

void read_rest(MapReader& reader, ModelSpec& model) {
  const bool llama = model.kind == ModelKind::llama;
  const std::int64_t usual_vocab = llama ? 32'000 : 50'257;
  model.vocab = or_assumed(reader.integer("vocab", {1, 100'000'000}), usual_vocab, "vocab",
                           fmt::format("{}", usual_vocab), model);
  model.tie_embeddings = or_assumed(reader.boolean("tie_embeddings"), !llama, "tie_embeddings",
                                    llama ? "false" : "true", model);
  const auto usual_norm =
      static_cast<std::size_t>(llama ? Normalization::rmsnorm : Normalization::layernorm);
  model.normalization = static_cast<Normalization>(
      reader.one_of("normalization", normalization_names).value_or(usual_norm));
  model.linear_bias = or_assumed(reader.boolean("linear_bias"), !llama, "linear_bias",
                                 llama ? "false" : "true", model);
  model.qkv_bias = reader.boolean("qkv_bias").value_or(model.linear_bias);
  model.qk_norm = reader.boolean("qk_norm").value_or(false);
  model.embedding_norm = reader.boolean("embedding_norm").value_or(false);
  model.parallel_block = reader.boolean("parallel_block").value_or(false);
  model.dropout = or_assumed(reader.number("dropout", Dimension::count, 0, 0.99), llama ? 0 : 0.1,
                             "dropout", llama ? "0" : "0.1", model);
  model.published_parameters = reader.number("published_parameters", Dimension::count, 1, 1e18);
  reader.text("published_note");
  model.source = reader.text("source").value_or("");
  model.title = reader.text("title").value_or(model.name);
}

}  // namespace

double parameters_per_layer(const ModelSpec& m) {
  const double h = static_cast<double>(m.hidden);
  const double q = static_cast<double>(m.query_size());
  const double kv = static_cast<double>(m.kv_size());
  const double inner = static_cast<double>(m.mlp_inner());
  const double ffn = static_cast<double>(m.ffn_hidden);
  double count = h * (q + 2 * kv) + q * h + h * inner + ffn * h + 2 * norm_parameters(m, h);
  if (m.qkv_bias) count += q + 2 * kv;
  if (m.linear_bias) count += h + inner + h;
  if (m.qk_norm) count += 2 * static_cast<double>(m.head_dim);
  return count;
}

double parameter_count(const ModelSpec& m) {
  const double h = static_cast<double>(m.hidden);
  double count = static_cast<double>(m.vocab) * h + static_cast<double>(m.max_positions) * h;
  count += static_cast<double>(m.layers) * parameters_per_layer(m) + norm_parameters(m, h);
  if (m.embedding_norm) count += norm_parameters(m, h);
  if (!m.tie_embeddings) count += static_cast<double>(m.vocab) * h;
  return count;
}

ModelSpec read_model(const Value& map, const std::string& name) {
  MapReader reader(map, name.empty() ? "model" : fmt::format("model '{}'", name));
  ModelSpec model;
  model.name = name;
  reject_later_kinds(reader);
  reader.required("kind");
  model.kind = static_cast<ModelKind>(*reader.one_of("kind", model_kind_names));
  read_sizes(reader, model);
  read_mlp(reader, model);
  read_positions(reader, model);
  read_rest(reader, model);
  reader.finish();
  return model;
}

Value to_value(const ModelSpec& m) {
  Value map;
  const auto put = [&map](const std::string& key, const auto& value) {
    map.set(key, scalar_value(fmt::format("{}", value)));
  };
  put("kind", model_kind_names[static_cast<std::size_t>(m.kind)]);
  put("layers", m.layers);
  put("hidden", m.hidden);
  put("heads", m.heads);
  put("kv_heads", m.kv_heads);
  put("head_dim", m.head_dim);
  put("ffn_hidden", m.ffn_hidden);
  put("gated_mlp", m.gated_mlp);
  put("activation", activation_names[static_cast<std::size_t>(m.activation)]);
  put("vocab", m.vocab);
  put("tie_embeddings", m.tie_embeddings);
  put("positions", positions_names[static_cast<std::size_t>(m.positions)]);
  put("max_positions", m.max_positions);
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
