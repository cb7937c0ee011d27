#include "costmodel/model/hf_nemotron_h.hpp"

#include <fmt/format.h>

#include <array>
#include <string>
#include <utility>

#include "costmodel/base/escape.hpp"

namespace costmodel {

namespace {

class NemotronH : public HfTranslation {
 public:
  explicit NemotronH(const Value& map) : HfTranslation(map) {}

  void read() {
    constexpr IntegerRange count{1, 100'000}, width{1, 4'194'304}, head{1, 65'536};
    put("kind", "hybrid", "model_type");
    reader_.required("hybrid_override_pattern");
    const std::string pattern = *reader_.text("hybrid_override_pattern");
    put("layer_pattern", pattern, "hybrid_override_pattern");
    // The pattern has a letter a layer. Only another number is put, for read_model to refuse: a
    // pattern of another length may be written over the file.
    const auto layers = reader_.integer("num_hidden_layers", count);
    if (layers && *layers != static_cast<std::int64_t>(pattern.size()))
      put("layers", *layers, "num_hidden_layers");
    size("hidden", "hidden_size", width);
    const std::int64_t heads = size("heads", "num_attention_heads", count);
    put("kv_heads", reader_.integer("num_key_value_heads", count).value_or(heads),
        "num_key_value_heads");
    // Nemotron-H's own files say attention_head_dim, those of transformers head_dim.
    const bool own = reader_.optional("attention_head_dim") != nullptr;
    size("head_dim", own ? "attention_head_dim" : "head_dim", head);
    if (pattern.find('M') != std::string::npos) scan();
    size("ffn_hidden", "intermediate_size", {1, 16'777'216});
    put("gated_mlp", false, "model_type");
    activation();
    if (pattern.find('E') != std::string::npos) experts();
    size("vocab", "vocab_size", {1, 100'000'000});
    put("tie_embeddings", reader_.boolean("tie_word_embeddings").value_or(false),
        "tie_word_embeddings");
    put("positions", "none", "model_type");
    put("max_positions", 0, "model_type");
    put("normalization", "rmsnorm", "model_type");
    put("linear_bias", reader_.boolean("mlp_bias").value_or(false), "mlp_bias");
    put("qkv_bias", reader_.boolean("attention_bias").value_or(false), "attention_bias");
    put("dropout", reader_.number("attention_dropout", Dimension::count, 0, 0.99).value_or(0),
        "attention_dropout");
    put("source", "Hugging Face config.json, model_type nemotron_h", "model_type");
  }

 private:
  void scan() {
    constexpr IntegerRange width{1, 65'536};
    size("mamba_heads", "mamba_num_heads", {1, 100'000});
    size("mamba_head_dim", "mamba_head_dim", width);
    size("state_size", "ssm_state_size", width);
    size("ssm_groups", "n_groups", width);
    size("conv_kernel", "conv_kernel", width);
    for (const char* known : {"expand", "mamba_hidden_act", "chunk_size"}) reader_.optional(known);
    for (const char* bias : {"use_bias", "mamba_proj_bias"})
      if (flag(bias, false)) tell(fmt::format("{} is left out: no bias is counted", bias));
    if (!flag("use_conv_bias", true))
      tell("use_conv_bias false is left out: the convolution is counted with bias");
  }

  void activation() {
    const std::string word = reader_.text("mlp_hidden_act").value_or("relu2");
    if (word == "relu2") return put("activation", "squared-relu", "mlp_hidden_act");
    if (word == "silu" || word == "gelu" || word == "relu")
      return put("activation", word, "mlp_hidden_act");
    throw ConfigError(reader_.mark_of("mlp_hidden_act"),
                      fmt::format("mlp_hidden_act: {} is not known", quote(word)),
                      "one of relu2, relu, gelu, silu");
  }

  // The shared expert may be several times as wide as a routed one: it counts as so many.
  void experts() {
    constexpr IntegerRange count{1, 100'000}, width{1, 16'777'216};
    size("experts", "n_routed_experts", count);
    size("top_k", "num_experts_per_tok", count);
    const std::int64_t own = size("expert_ffn_hidden", "moe_intermediate_size", width);
    const std::string_view key = "moe_shared_expert_intermediate_size";
    const std::int64_t shared = reader_.integer("n_shared_experts", {0, 100'000}).value_or(0) *
                                reader_.integer(key, width).value_or(own);
    if (shared % own != 0) {
      throw ConfigError(reader_.mark_of(key),
                        fmt::format("{}: shared experts of {} columns are no multiple of "
                                    "moe_intermediate_size {}",
                                    key, shared, own),
                        "write a model file of your own, with a width that is");
    }
    put("shared_experts", shared / own, "n_shared_experts");
    // transformers, NemotronHTopkRouter: DeepSeek-V3's, which no field names.
    put("router_score", "sigmoid", "model_type");
    put("router_bias", true, "model_type");
    put("router_scaling",
        reader_.number("routed_scaling_factor", Dimension::count, 1e-6, 1e6).value_or(1),
        "routed_scaling_factor");
    if (const auto low = reader_.integer("moe_latent_size", width))
      put("moe_latent_size", *low, "moe_latent_size");
  }
};

constexpr std::array<HfFamily, 1> hybrids{
    {{"nemotron_h", "NemotronHForCausalLM", read_hf_as<NemotronH>}}};

}  // namespace

std::span<const HfFamily> hf_hybrids() { return hybrids; }

}  // namespace costmodel
