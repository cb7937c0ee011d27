#include "costmodel/model/hf_decoders.hpp"

#include <array>
#include <cmath>
#include <utility>

#include "costmodel/base/escape.hpp"

namespace costmodel {

namespace {

// The sizes that a file may leave to its class (transformers 4.57, configuration_gemma3.py: files
// of gemma3 name only what differs); 0: the file must have it.
struct Usual {
  std::int64_t vocab = 0, heads = 0, kv_heads = 0, head_dim = 0;
  bool tied = false;
};

class Decoder : public HfTranslation {
 public:
  explicit Decoder(const Value& map) : HfTranslation(map) {}

 protected:
  // Of all of them: RMSNorm, rotary positions, a gated MLP.
  void llama(std::string_view kind, std::string_view type, const Usual& usual) {
    put("kind", kind, "model_type");
    layers_ = size("layers", "num_hidden_layers", hf_counts);
    hidden_ = size("hidden", "hidden_size", hf_widths);
    const std::int64_t heads = put_size("heads", "num_attention_heads", hf_counts, usual.heads);
    const std::int64_t kv = usual.kv_heads > 0 ? usual.kv_heads : heads;
    size_or("kv_heads", "num_key_value_heads", hf_counts, kv);
    head_dim(heads, usual.head_dim);
    put_size("vocab", "vocab_size", {1, 100'000'000}, usual.vocab);
    put("gated_mlp", true, "model_type");
    put("tie_embeddings", flag("tie_word_embeddings", usual.tied), "tie_word_embeddings");
    put("normalization", "rmsnorm", "model_type");
    rotary();
    put("source", fmt::format("Hugging Face config.json, model_type {}", type), "model_type");
  }

  std::int64_t put_size(const std::string& ours, std::string_view key, IntegerRange range,
                        std::int64_t usual) {
    return usual > 0 ? size_or(ours, key, range, usual) : size(ours, key, range);
  }

  void head_dim(std::int64_t heads, std::int64_t usual) {
    if (const auto given = reader_.integer("head_dim", hf_small))
      return put("head_dim", *given, "head_dim");
    if (usual == 0 && hidden_ % heads != 0) {
      throw ConfigError(
          reader_.mark_of("hidden_size"),
          fmt::format("hidden_size {} is not divisible by num_attention_heads {}", hidden_, heads),
          "choose sizes that divide, or give head_dim");
    }
    put("head_dim", usual > 0 ? usual : hidden_ / heads, "head_dim");
  }

  void biases(bool all) {
    const bool attention = flag("attention_bias", all);
    put("qkv_bias", attention, "attention_bias");
    put("linear_bias", all, "model_type");
    if (attention != all)
      tell("the bias of the attention output is " + std::string(all ? "added" : "left out"));
  }

  // Mixtures of experts: their number is under `key`.
  void experts(std::string_view key, std::string_view width) {
    size("experts", key, hf_counts);
    size("top_k", "num_experts_per_tok", hf_counts);
    expert_width_ = size("expert_ffn_hidden", width, hf_inner);
    put("ffn_hidden", expert_width_, width);  // there is no dense layer
  }

  void window() { size_or("sliding_window", "sliding_window", hf_tokens, 4096); }

  std::int64_t layers_ = 0, hidden_ = 0, expert_width_ = 0;
};

// transformers, Phi3: queries, keys and values are one product, gate and up are one; no biases.
class Phi3 : public Decoder {
 public:
  using Decoder::Decoder;
  void read() {
    llama("llama", "phi3", {});
    size("ffn_hidden", "intermediate_size", hf_inner);
    activation("hidden_act", "silu");
    put("linear_bias", false, "model_type");
    put("qkv_bias", false, "model_type");
    reader_.optional("attention_bias");  // no class reads it
    if (const auto window = reader_.integer("sliding_window", hf_tokens))
      put("sliding_window", *window, "sliding_window");
    dropout({"resid_pdrop", "embd_pdrop", "attention_dropout"}, 0);
  }
};

// transformers, Gemma2 and Gemma3Text: norms before and after both parts of a layer. Gemma 2's even
// layers have a window; of Gemma 3's all but each sixth, and it norms queries and keys.
class Gemma : public Decoder {
 public:
  using Decoder::Decoder;
  void read(bool third) {
    constexpr Usual second{0, 0, 0, 256, true}, text{262'208, 8, 4, 256, true};
    llama("llama", third ? "gemma3_text" : "gemma2", third ? text : second);
    size("ffn_hidden", "intermediate_size", hf_inner);
    reader_.optional("hidden_act");  // the classes read the other
    activation("hidden_activation", "gelu_pytorch_tanh");
    biases(false);
    put("norm_placement", "both", "model_type");
    if (third) put("qk_norm", true, "model_type");
    window();
    const auto every = reader_.integer("sliding_window_pattern", hf_counts).value_or(third ? 6 : 2);
    attention_pattern(std::string(static_cast<std::size_t>(every - 1), 'S') + "F", layers_);
    dropout({"attention_dropout"}, 0);
    softcaps();
    // Its norms multiply by 1 + weight, and embeddings by sqrt(hidden) (transformers,
    // Gemma2RMSNorm, Gemma2Model).
    put("layernorm_1p", true, "model_type");
    put("embedding_multiplier", std::sqrt(static_cast<double>(hidden_)), "hidden_size");
    if (const auto scalar = reader_.number("query_pre_attn_scalar", Dimension::count, 1, 1e9))
      put("attention_multiplier", 1 / std::sqrt(*scalar), "query_pre_attn_scalar");
    if (reader_.optional("rope_local_base_freq") != nullptr)
      tell("rope_local_base_freq, the windows' own base, is left out: it costs nothing");
  }

 private:
  void softcaps() {
    const auto cap = [&](const char* ours, const char* key) {
      if (const auto value = reader_.number(key, Dimension::count, 0, 1e9)) put(ours, *value, key);
    };
    cap("attention_softcap", "attn_logit_softcapping");
    cap("logits_softcap", "final_logit_softcapping");
  }
};

// transformers, Olmo2: norms on the results of attention and MLP alone, and over all queries and
// all keys at once (arXiv:2501.00656, section 3.2).
class Olmo2 : public Decoder {
 public:
  using Decoder::Decoder;
  void read() {
    llama("llama", "olmo2", {});
    size("ffn_hidden", "intermediate_size", hf_inner);
    activation("hidden_act", "silu");
    biases(false);
    put("norm_placement", "branch", "model_type");
    put("qk_norm", true, "model_type");
    put("qk_norm_whole", true, "model_type");
    dropout({"attention_dropout"}, 0);
  }
};

// transformers, GptOss: biases everywhere, in experts and router too; sinks; windows in even
// layers.
class GptOss : public Decoder {
 public:
  using Decoder::Decoder;
  void read() {
    llama("moe", "gpt_oss", {});
    experts("num_local_experts", "intermediate_size");
    reader_.optional("experts_per_token");  // the same as num_experts_per_tok
    put("activation", "silu", "hidden_act");
    reader_.optional("hidden_act");
    biases(true);
    put("attention_sinks", true, "model_type");
    window();
    attention_pattern("SF", layers_);
    dropout({"attention_dropout"}, 0);
    const auto limit = reader_.number("swiglu_limit", Dimension::count, 0, 1e9);
    put("activation_clamp", limit.value_or(7), "swiglu_limit");
    put("glu_offset", 1, "model_type");
  }
};

// transformers, Qwen3Next: three gated delta nets, then attention with a gate; experts in each
// layer, with a shared one behind a gate.
class Qwen3Next : public Decoder {
 public:
  using Decoder::Decoder;
  void read() {
    llama("moe", "qwen3_next", {0, 0, 0, 256, false});
    experts("num_experts", "moe_intermediate_size");
    shared();
    reader_.optional("intermediate_size");  // of mlp_only_layers, of which it has none
    only_experts();
    activation("hidden_act", "silu");
    biases(false);
    put("qk_norm", true, "model_type");
    put("attention_gate", true, "model_type");
    const auto every = reader_.integer("full_attention_interval", hf_counts).value_or(4);
    attention_pattern(std::string(static_cast<std::size_t>(every - 1), 'D') + "F", layers_);
    delta();
    dropout({"attention_dropout"}, 0);
    tell(
        "multi-token prediction, whose layer the published weights have and config.json does not "
        "name, is left out (mtp_layers: 1 adds it)");
  }

 private:
  void shared() {
    const std::string_view key = "shared_expert_intermediate_size";
    const std::int64_t width = reader_.integer(key, {0, 16'777'216}).value_or(0);
    if (width % expert_width_ != 0) {
      throw ConfigError(reader_.mark_of(key),
                        fmt::format("{} {} is no multiple of moe_intermediate_size {}", key, width,
                                    expert_width_),
                        "write a model file of your own, with a width that is");
    }
    put("shared_experts", width / expert_width_, key);
    put("shared_expert_gate", width > 0, key);
  }

  void only_experts() {
    const Value* dense = reader_.optional("mlp_only_layers");
    const bool sparse = reader_.integer("decoder_sparse_step", hf_counts).value_or(1) == 1;
    if (sparse && (dense == nullptr || dense->items.empty())) return;
    throw ConfigError(reader_.mark_of(sparse ? "mlp_only_layers" : "decoder_sparse_step"),
                      "not every layer has experts",
                      "set moe_every or first_dense_layers in a model file of your own");
  }

  void delta() {
    size("linear_num_key_heads", "linear_num_key_heads", hf_counts);
    size("linear_num_value_heads", "linear_num_value_heads", hf_counts);
    size("linear_key_head_dim", "linear_key_head_dim", hf_small);
    size("linear_value_head_dim", "linear_value_head_dim", hf_small);
    size_or("conv_kernel", "linear_conv_kernel_dim", hf_small, 4);
  }
};

constexpr std::array<HfFamily, 6> decoders{{
    {"phi3", "Phi3ForCausalLM", read_hf_as<Phi3>},
    {"gemma2", "Gemma2ForCausalLM", read_hf_as<Gemma, false>},
    {"gemma3_text", "Gemma3ForCausalLM", read_hf_as<Gemma, true>},
    {"olmo2", "Olmo2ForCausalLM", read_hf_as<Olmo2>},
    {"gpt_oss", "GptOssForCausalLM", read_hf_as<GptOss>},
    {"qwen3_next", "Qwen3NextForCausalLM", read_hf_as<Qwen3Next>},
}};

}  // namespace

std::span<const HfFamily> hf_decoders() { return decoders; }

}  // namespace costmodel
