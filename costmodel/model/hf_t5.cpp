#include "costmodel/model/hf_t5.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "costmodel/base/escape.hpp"
#include "costmodel/model/model_spec.hpp"

namespace costmodel {

namespace {

class T5 : public HfTranslation {
 public:
  explicit T5(const Value& map) : HfTranslation(map) {}

  // `plain`: the original T5, with tied embeddings and ReLU. Otherwise T5 1.1 and mT5, with an
  // untied output projection and a gated MLP.
  void read(bool plain) {
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
    mlp(plain);
    size("vocab", "vocab_size", {1, 100'000'000});
    put("tie_embeddings", reader_.boolean("tie_word_embeddings").value_or(plain),
        "tie_word_embeddings");
    positions();
    put("normalization", "rmsnorm", "model_type");
    put("linear_bias", false, "model_type");
    put("qkv_bias", false, "model_type");
    constexpr double usual_dropout = 0.1;
    put("dropout",
        reader_.number("dropout_rate", Dimension::count, 0, 0.99).value_or(usual_dropout),
        "dropout_rate");
    put("source", fmt::format("Hugging Face config.json, model_type {}", plain ? "t5" : "mt5"),
        "model_type");
  }

 private:
  // "relu", "gated-gelu": an optional gate, and the activation.
  void mlp(bool plain) {
    const std::string word =
        reader_.text("feed_forward_proj").value_or(plain ? "relu" : "gated-gelu");
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
};

constexpr std::array<HfFamily, 2> t5s{{
    {"t5", "T5ForConditionalGeneration", read_hf_as<T5, true>},
    {"mt5", "MT5ForConditionalGeneration", read_hf_as<T5, false>},
}};

}  // namespace

std::span<const HfFamily> hf_t5s() { return t5s; }

}  // namespace costmodel
