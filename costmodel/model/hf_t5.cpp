#include "costmodel/model/hf_t5.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "costmodel/base/escape.hpp"
#include "costmodel/model/hf_translation.hpp"
#include "costmodel/model/model_spec.hpp"

namespace costmodel {

namespace {

// `plain`: the original T5, with tied embeddings and ReLU. Otherwise T5 1.1 and mT5, with an untied
// output projection and a gated MLP.
struct T5Class {
  std::string_view model_type, architecture;
  bool plain;
};

constexpr std::array<T5Class, 2> t5_classes{{
    {"t5", "T5ForConditionalGeneration", true},
    {"mt5", "MT5ForConditionalGeneration", false},
}};

const T5Class* find_t5_class(std::string_view type) {
  for (const T5Class& each : t5_classes)
    if (type == each.model_type || type == each.architecture) return &each;
  return nullptr;
}

class T5Translation : private HfTranslation {
 public:
  using HfTranslation::told;
  T5Translation(const Value& map, const T5Class& of) : HfTranslation(map), class_(of) {}

  Value run() {
    put("kind", "t5", "model_type");
    constexpr IntegerRange count{1, 100'000}, width{1, 4'194'304};
    const std::int64_t layers = size("encoder_layers", "num_layers", count);
    put("decoder_layers", reader_.integer("num_decoder_layers", count).value_or(layers),
        "num_decoder_layers");
    size("hidden", "d_model", width);
    const std::int64_t heads = size("heads", "num_heads", count);
    put("kv_heads", heads, "num_heads");
    constexpr std::int64_t usual_head_dim = 64;
    put("head_dim", reader_.integer("d_kv", {1, 65'536}).value_or(usual_head_dim), "d_kv");
    size("ffn_hidden", "d_ff", {1, 16'777'216});
    mlp();
    size("vocab", "vocab_size", {1, 100'000'000});
    put("tie_embeddings", reader_.boolean("tie_word_embeddings").value_or(class_.plain),
        "tie_word_embeddings");
    positions();
    put("normalization", "rmsnorm", "model_type");
    put("linear_bias", false, "model_type");
    put("qkv_bias", false, "model_type");
    constexpr double usual_dropout = 0.1;
    put("dropout",
        reader_.number("dropout_rate", Dimension::count, 0, 0.99).value_or(usual_dropout),
        "dropout_rate");
    put("source", fmt::format("Hugging Face config.json, model_type {}", class_.model_type),
        "model_type");
    return std::move(out_);
  }

 private:
  // "relu", "gated-gelu": an optional gate, and the activation.
  void mlp() {
    const std::string word =
        reader_.text("feed_forward_proj").value_or(class_.plain ? "relu" : "gated-gelu");
    const std::string gate = "gated-";
    const bool gated = word.starts_with(gate);
    std::string function = gated ? word.substr(gate.size()) : word;
    if (function == "gelu_new") function = "gelu";
    const std::vector<std::string> known{"relu", "gelu", "silu", "gated-gelu", "gated-silu"};
    if (std::find(known.begin(), known.end(), (gated ? gate : "") + function) == known.end()) {
      throw ConfigError(reader_.mark_of("feed_forward_proj"),
                        fmt::format("feed_forward_proj: {} is not known", quote(word)),
                        known_names(word, known));
    }
    put("gated_mlp", gated, "feed_forward_proj");
    put("activation", function, "feed_forward_proj");
  }

  void positions() {
    const std::string_view key = "relative_attention_num_buckets";
    const auto buckets = reader_.integer(key, {1, 1'000'000}).value_or(relative_buckets);
    if (buckets != relative_buckets) {
      throw ConfigError(reader_.mark_of(key),
                        fmt::format("{} {}: other tables than of {} buckets are not modelled", key,
                                    buckets, relative_buckets),
                        fmt::format("set {}", relative_buckets));
    }
    put("positions", "relative", "model_type");
    put("max_positions", 0, "model_type");
  }

  const T5Class& class_;
};

}  // namespace

bool is_t5_type(std::string_view type) { return find_t5_class(type) != nullptr; }

Value from_t5_config(const Value& map, std::string_view type, std::vector<std::string>& told) {
  T5Translation translation(map, *find_t5_class(type));
  Value ours = translation.run();
  told = translation.told();
  return ours;
}

}  // namespace costmodel
