#include "costmodel/model/hf_llama.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "costmodel/base/escape.hpp"

namespace costmodel {

namespace {

// The defaults of the transformers classes, which config.json may omit.
struct Family {
  std::string_view model_type;
  std::string_view architecture;
  bool llama;           // RMSNorm, rotary positions, gated MLP
  bool tied;            // tie_word_embeddings when absent
  bool attention_bias;  // of query, key, value and output when the class reads attention_bias
  // Mixture of experts: the class's keys for the number of experts and their width; empty: dense.
  std::string_view experts_key{}, expert_width_key{};
};

constexpr std::array<Family, 10> families{{
    {"llama", "LlamaForCausalLM", true, false, false},
    {"mistral", "MistralForCausalLM", true, false, false},
    {"qwen2", "Qwen2ForCausalLM", true, false, false},
    {"qwen3", "Qwen3ForCausalLM", true, false, false},
    {"mixtral", "MixtralForCausalLM", true, false, false, "num_local_experts", "intermediate_size"},
    {"qwen3_moe", "Qwen3MoeForCausalLM", true, false, false, "num_experts",
     "moe_intermediate_size"},
    {"deepseek_v2", "DeepseekV2ForCausalLM", true, false, false, "n_routed_experts",
     "moe_intermediate_size"},
    {"deepseek_v3", "DeepseekV3ForCausalLM", true, false, false, "n_routed_experts",
     "moe_intermediate_size"},
    {"gpt2", "GPT2LMHeadModel", false, true, true},
    {"gpt_neox", "GPTNeoXForCausalLM", false, false, true},
}};

class Llama : public HfTranslation {
 public:
  explicit Llama(const Value& map) : HfTranslation(map) {}

  void read(std::size_t family) {
    family_ = families[family];
    notes_ = fmt::format("Hugging Face config.json, model_type {}", family_.model_type);
    put("kind", sparse() ? "moe" : family_.llama ? "llama" : "gpt", "model_type");
    sizes();
    attention_sizes();
    mlp();
    if (sparse()) experts();
    embeddings();
    biases();
    rest();
  }

 private:
  // gpt2 has its own key names; its class accepts the usual ones as aliases.
  std::string_view spelling(std::string_view usual, std::string_view gpt2) {
    if (family_.model_type != "gpt2") return usual;
    return reader_.optional(gpt2) == nullptr && reader_.optional(usual) != nullptr ? usual : gpt2;
  }

  void sizes() {
    constexpr IntegerRange count{1, 100'000};
    heads_key_ = spelling("num_attention_heads", "n_head");
    hidden_key_ = spelling("hidden_size", "n_embd");
    layers_ = size("layers", spelling("num_hidden_layers", "n_layer"), count);
    hidden_ = size("hidden", hidden_key_, {1, 4'194'304});
    heads_ = size("heads", heads_key_, count);
    size("vocab", "vocab_size", {1, 100'000'000});
  }

  void latent_attention() {
    constexpr IntegerRange width{1, 65'536};
    const auto rank = reader_.integer("q_lora_rank", width);  // null: queries from the hidden state
    put("q_lora_rank", rank.value_or(0), "q_lora_rank");
    size("kv_lora_rank", "kv_lora_rank", width);
    size("qk_head_dim", "qk_nope_head_dim", width);
    size("qk_pos_emb_head_dim", "qk_rope_head_dim", width);
    size("v_head_dim", "v_head_dim", width);
    reader_.optional("num_key_value_heads");  // all heads have keys and values of their own
  }

  void attention_sizes() {
    if (is_deepseek()) return latent_attention();
    const auto kv_heads = reader_.integer("num_key_value_heads", {1, 100'000}).value_or(heads_);
    if (heads_ % kv_heads != 0) {
      throw ConfigError(
          reader_.mark_of("num_key_value_heads"),
          fmt::format("num_key_value_heads {} does not divide {} {}", kv_heads, heads_key_, heads_),
          "every key/value head serves the same number of query heads");
    }
    put("kv_heads", kv_heads, "num_key_value_heads");
    put("head_dim", head_dim(), "head_dim");
  }

  bool is_deepseek() const { return family_.model_type.starts_with("deepseek"); }

  bool is_qwen3() const { return family_.model_type.starts_with("qwen3"); }

  std::int64_t head_dim() {
    if (const auto given = reader_.integer("head_dim", {1, 65'536})) return *given;
    if (is_qwen3()) return 128;  // Qwen3Config's default
    if (hidden_ % heads_ == 0) return hidden_ / heads_;
    throw ConfigError(
        reader_.mark_of(hidden_key_),
        fmt::format("{} {} is not divisible by {} {}", hidden_key_, hidden_, heads_key_, heads_),
        "choose sizes that divide, or give head_dim");
  }

  void mlp() {
    constexpr IntegerRange width{1, 16'777'216};
    const std::string_view inner = spelling("intermediate_size", "n_inner");
    if (family_.model_type == "gpt2" && reader_.optional(inner) == nullptr) {
      put("ffn_hidden", 4 * hidden_, inner);
    } else {
      size("ffn_hidden", inner, width);
    }
    put("gated_mlp", family_.llama, "model_type");
    activation(spelling("hidden_act", "activation_function"), family_.llama ? "silu" : "gelu");
  }

  bool sparse() const { return !family_.experts_key.empty(); }

  // The layers of mlp_only_layers are dense; Shardplan supports only the first ones.
  void experts() {
    size("experts", family_.experts_key, {1, 100'000});
    size("top_k", "num_experts_per_tok", {1, 100'000});
    size("expert_ffn_hidden", family_.expert_width_key, {1, 16'777'216});
    if (reader_.integer("decoder_sparse_step", {1, 100'000}).value_or(1) != 1) {
      throw ConfigError(reader_.mark_of("decoder_sparse_step"),
                        "decoder_sparse_step: not every layer has experts",
                        "set 1, and moe_every in a model file of your own");
    }
    if (is_deepseek()) {
      put("shared_experts", reader_.integer("n_shared_experts", {0, 100'000}).value_or(0),
          "n_shared_experts");
      put("moe_every", reader_.integer("moe_layer_freq", {1, 100'000}).value_or(1),
          "moe_layer_freq");
      put("first_dense_layers", reader_.integer("first_k_dense_replace", {0, 100'000}).value_or(0),
          "first_k_dense_replace");
      router();
      if (const auto groups = reader_.integer("n_group", {1, 100'000}); groups.value_or(1) > 1) {
        put("expert_groups", *groups, "n_group");
        put("expert_groups_per_token",
            reader_.integer("topk_group", {1, *groups}).value_or(*groups), "topk_group");
      }
      if (const auto more = reader_.integer("num_nextn_predict_layers", {1, 100})) {
        note(fmt::format("its {} multi-token prediction layer is left out (mtp_layers: {} adds it)",
                         *more, *more));
      }
      return;
    }
    std::int64_t dense = 0;
    if (const Value* list = reader_.optional("mlp_only_layers")) {
      for (const Value& layer : list->items) {
        if (read_integer(layer, "mlp_only_layers", {0, 100'000}) == dense) {
          ++dense;
          continue;
        }
        throw ConfigError(layer.mark, "mlp_only_layers are not the first layers",
                          "list 0, 1, ... in order, or write a model file of your own");
      }
    }
    put("first_dense_layers", dense, "mlp_only_layers");
  }

  void router() {
    const std::string score = reader_.text("scoring_func").value_or("softmax");
    put("router_score", score == "sigmoid" ? "sigmoid" : "pre-softmax", "scoring_func");
    // DeepseekV3's class has the bias whatever topk_method says.
    const bool third = family_.model_type == "deepseek_v3";
    put("router_bias", reader_.text("topk_method").value_or(third ? "noaux_tc" : "") == "noaux_tc",
        "topk_method");
    put("router_scaling",
        reader_.number("routed_scaling_factor", Dimension::count, 1e-6, 1e6).value_or(1),
        "routed_scaling_factor");
  }

  // Approximations of one function cost the same; Hugging Face names each.
  void embeddings() {
    put("tie_embeddings", flag("tie_word_embeddings", family_.tied), "tie_word_embeddings");
    const bool learned = family_.model_type == "gpt2";
    const std::string_view key = spelling("max_position_embeddings", "n_positions");
    const std::int64_t rows = reader_.integer(key, {1, 1'000'000'000}).value_or(1024);
    put("positions", learned ? "learned" : "rotary", "model_type");
    put("max_positions", learned ? rows : 0, key);
    put("normalization", family_.llama ? "rmsnorm" : "layernorm", "model_type");
    if (!learned) rotary();
  }

  // The base and the rotated part of a head, by the names of each class.
  void rotary() {
    const bool neox = family_.model_type == "gpt_neox";
    const std::string_view key =
        neox && reader_.optional("rotary_emb_base") != nullptr ? "rotary_emb_base" : "rope_theta";
    std::optional<double> base = reader_.number(key, Dimension::count, 1, 1e12);
    // Where transformers 5 writes it.
    if (const Value* all = rope_parameters())
      base = MapReader(*all, "rope_parameters").number("rope_theta", Dimension::count, 1, 1e12);
    const std::string_view part = neox ? "rotary_pct" : "partial_rotary_factor";
    constexpr double neox_part = 0.25;  // GPTNeoXConfig's default
    auto percent = reader_.number(part, Dimension::count, 1e-3, 1);
    if (neox && !percent) percent = neox_part;
    put_rotation(base, key, percent, part);
    rope_scaling();
  }

  // attention_bias covers query, key, value and output; Shardplan has one key for query, key and
  // value, and one for output and MLP. If those two differ, the output projection's bias (hidden
  // parameters per layer) follows the MLP's.
  void biases() {
    const bool reads_attention = family_.model_type != "gpt2" && family_.model_type != "qwen2" &&
                                 family_.model_type != "mistral" && family_.model_type != "mixtral";
    bool attention = family_.attention_bias;
    if (reads_attention) attention = reader_.boolean("attention_bias").value_or(attention);
    bool mlp = !family_.llama;
    if (family_.model_type == "llama") mlp = reader_.boolean("mlp_bias").value_or(mlp);
    put("linear_bias", mlp, "mlp_bias");
    put("qkv_bias", attention || family_.model_type == "qwen2", "attention_bias");
    if (attention != mlp)
      note(fmt::format("the bias of the attention output is {}", mlp ? "added" : "left out"));
  }

  void rest() {
    if (is_qwen3()) put("qk_norm", true, "model_type");
    if (family_.model_type == "gpt_neox") {
      for (const char* old : {"attention_probs_dropout_prob", "hidden_dropout_prob"})
        reader_.optional(old);  // that its class no longer reads
      put("parallel_block", reader_.boolean("use_parallel_residual").value_or(true),
          "use_parallel_residual");
    }
    if (family_.model_type == "gpt2") {
      dropout({"resid_pdrop", "attn_pdrop", "embd_pdrop"}, 0.1);
    } else {
      dropout({"attention_dropout", "hidden_dropout"}, 0);
    }
    windows();
    put("source", notes_, "model_type");
  }

  // Mistral's window holds whenever it is given, in every layer; Qwen's only when switched on, from
  // layer max_window_layers on, or as layer_types says (transformers, Qwen2Config).
  void windows() {
    const bool qwen = family_.model_type.starts_with("qwen");
    if (qwen && !flag("use_sliding_window", false)) {
      reader_.optional("sliding_window");
      reader_.optional("layer_types");
      return;
    }
    if (!qwen && family_.model_type != "mistral" && family_.model_type != "mixtral") return;
    const auto window = reader_.integer("sliding_window", {1, 1'000'000'000});
    if (!window) return;
    put("sliding_window", *window, "sliding_window");
    if (!qwen) return;
    const std::int64_t full =
        std::min(layers_, reader_.integer("max_window_layers", {0, 100'000}).value_or(layers_));
    std::string letters(static_cast<std::size_t>(full), 'F');
    letters.append(static_cast<std::size_t>(layers_ - full), 'S');
    attention_pattern(letters, layers_);
  }

  void note(const std::string& what) {
    notes_ += "; " + what;
    tell(what);
  }

  Family family_{};
  std::string notes_;
  std::string_view hidden_key_, heads_key_;
  std::int64_t layers_ = 0, hidden_ = 0, heads_ = 0;
};

template <std::size_t... i>
constexpr std::array<HfFamily, sizeof...(i)> family_rows(std::index_sequence<i...>) {
  return {{{families[i].model_type, families[i].architecture, read_hf_as<Llama, i>}...}};
}

constexpr auto llamas = family_rows(std::make_index_sequence<families.size()>());

}  // namespace

std::span<const HfFamily> hf_llamas() { return llamas; }

}  // namespace costmodel
