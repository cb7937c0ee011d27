// The architecture of a model: its sizes and the choices that change its operators. No parallelism.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace costmodel {

enum class ModelKind { gpt, llama, moe, mamba, t5, hybrid };
// relative: a bias added to the attention scores by distance, from one table per stack (Raffel et
// al. 2020, arXiv:1910.10683, section 2.1).
enum class Positions { learned, rotary, alibi, none, relative };
// How a router turns scores into weights of experts: softmax over the chosen ones, softmax over all
// before the choice (DeepSeek-V2), or a sigmoid of each (DeepSeek-V3, arXiv:2412.19437, eq. 15).
enum class RouterScore { softmax, pre_softmax, sigmoid };
enum class Normalization { layernorm, rmsnorm };
enum class ActivationFunction { gelu, relu, squared_relu, silu };

inline constexpr std::array<std::string_view, 6> model_kind_names{"gpt",   "llama", "moe",
                                                                  "mamba", "t5",    "hybrid"};
inline constexpr std::array<std::string_view, 5> positions_names{"learned", "rotary", "alibi",
                                                                 "none", "relative"};
inline constexpr std::array<std::string_view, 3> router_score_names{"softmax", "pre-softmax",
                                                                    "sigmoid"};
inline constexpr std::array<std::string_view, 2> normalization_names{"layernorm", "rmsnorm"};
inline constexpr std::array<std::string_view, 4> activation_names{"gelu", "relu", "squared-relu",
                                                                  "silu"};

inline constexpr std::int64_t relative_buckets = 32;  // rows of T5's table; one column per head

struct ModelSpec {
  std::string name;
  std::string title;
  ModelKind kind = ModelKind::gpt;
  std::int64_t layers = 0;    // l
  std::int64_t hidden = 0;    // h
  std::int64_t heads = 0;     // a
  std::int64_t kv_heads = 0;  // a for multi-head, 1 for multi-query attention
  std::int64_t head_dim = 0;  // of queries and keys
  // Multi-head latent attention (DeepSeek-V2, arXiv:2405.04434, section 2.1): the keys and values
  // of all heads are projected up from one latent vector per token, the queries from another. The
  // names are Megatron's.
  std::int64_t kv_lora_rank = 0;         // 0: standard attention
  std::int64_t q_lora_rank = 0;          // 0: queries are projected directly from the hidden state
  std::int64_t qk_head_dim = 0;          // of queries and keys without the rotary part
  std::int64_t qk_pos_emb_head_dim = 0;  // the rotary part; all heads share its key
  std::int64_t v_head_dim = 0;           // 0: head_dim
  std::int64_t ffn_hidden = 0;
  bool gated_mlp = false;  // gate and up projections, multiplied (SwiGLU)
  ActivationFunction activation = ActivationFunction::gelu;
  std::int64_t vocab = 0;      // V, before padding
  bool tie_embeddings = true;  // output projection shares the token embedding
  Positions positions = Positions::learned;
  std::int64_t max_positions = 0;  // rows of the learned table
  // Of rotary positions; they cost the same whatever these are, but an exported script must train
  // the same model: the base, the part of a head that is rotated, and the factor by which Llama
  // 3.1's scaling stretches low frequencies (0: none).
  double rotary_base = 10'000, rotary_percent = 1, rope_scaling_factor = 0;
  Normalization normalization = Normalization::layernorm;
  bool linear_bias = true;
  bool qkv_bias = true;
  bool qk_norm = false;         // normalised queries and keys (Qwen3)
  bool embedding_norm = false;  // a normalisation after the embedding (BLOOM)
  // Mixture of experts (Shazeer et al. 2017, arXiv:1701.06538): some layers have `experts` MLPs, of
  // which each token uses top_k, and shared MLPs that every token uses.
  std::int64_t experts = 0;  // 0: all layers are dense
  std::int64_t top_k = 0;
  std::int64_t expert_ffn_hidden = 0;
  std::int64_t shared_experts = 0;      // each as wide as an expert
  std::int64_t first_dense_layers = 0;  // the first layers have a dense MLP of width ffn_hidden
  std::int64_t moe_every = 1;  // of the others, layer i has experts when i is a multiple of this
  // Group-limited routing (DeepSeek-V3, arXiv:2412.19437, section 2.1.2): a token chooses its top_k
  // within expert_groups_per_token of expert_groups groups. 0: among all experts.
  std::int64_t expert_groups = 0, expert_groups_per_token = 0;
  // What the router computes costs nothing that shows, but is exported: its score, a bias for each
  // expert in place of a loss that balances them (section 2.1.2 there), and a factor on the
  // weights.
  RouterScore router_score = RouterScore::softmax;
  bool router_bias = false;
  double router_scaling = 1;
  // Multi-token prediction (section 2.2 there): further layers, each with a projection of 2h to h
  // and the head again, on the last stage.
  std::int64_t mtp_layers = 0;
  // Mamba-2 (Dao and Gu 2024, arXiv:2405.21060): every layer is a state-space scan over `heads`
  // heads of head_dim channels, without attention and MLP.
  std::int64_t state_size = 0;  // N; 0: no scan
  std::int64_t ssm_groups = 0;  // all heads of a group share B and C
  std::int64_t conv_kernel = 0;
  // A hybrid (Nemotron-H, arXiv:2504.03624, section 2.1): one letter a layer, as Megatron's
  // --hybrid-layer-pattern has them. Each layer is one block with its norm and residual: M a scan,
  // * attention, - an MLP, E experts. Empty: all layers alike, or as `experts` says.
  std::string layer_pattern;
  std::int64_t mamba_heads = 0, mamba_head_dim = 0;  // of the scan; heads and head_dim: attention's
  // Encoder-decoder (T5: arXiv:1910.10683, section 2.1): `layers` counts both stacks, the encoder's
  // first. A decoder layer has self-attention and cross-attention to the encoder's output.
  std::int64_t encoder_layers = 0;  // 0: a decoder-only model
  std::int64_t decoder_layers = 0;
  // Of a decoder layer where they are not the encoder's; both share hidden and head_dim, which
  // cross-attention needs.
  std::int64_t decoder_heads = 0, decoder_ffn_hidden = 0;  // 0: heads, ffn_hidden
  bool parallel_block = false;  // attention and MLP in parallel on one input (GPT-NeoX)
  double dropout = 0;           // of embedding, attention and hidden states
  std::optional<double> published_parameters;
  std::string source;
  std::vector<std::string> assumed;  // keys missing in the description

  std::int64_t query_size() const { return heads * head_dim; }  // columns of Q
  std::int64_t kv_size() const { return kv_heads * head_dim; }  // columns of K, and of V
  std::int64_t value_dim() const { return v_head_dim > 0 ? v_head_dim : head_dim; }
  std::int64_t scan_heads() const { return layer_pattern.empty() ? heads : mamba_heads; }
  std::int64_t scan_head_dim() const { return layer_pattern.empty() ? head_dim : mamba_head_dim; }
  std::int64_t scan_width() const { return scan_heads() * scan_head_dim(); }
  // Channels of the convolution: those of x, B and C.
  std::int64_t conv_channels() const { return scan_width() + 2 * ssm_groups * state_size; }
  bool latent_attention() const { return kv_lora_rank > 0; }
  bool encoder_decoder() const { return encoder_layers > 0; }
  // The model whose layers are all as wide as the decoder's: its heads and feed-forward. Where
  // every head has keys and values of its own, so has every head of the decoder.
  ModelSpec as_decoder() const {
    ModelSpec own = *this;
    if (decoder_heads > 0) own.heads = decoder_heads;
    if (decoder_heads > 0 && kv_heads == heads) own.kv_heads = decoder_heads;
    if (decoder_ffn_hidden > 0) own.ffn_hidden = decoder_ffn_hidden;
    return own;
  }
  std::int64_t gates() const { return gated_mlp ? 2 : 1; }
  std::int64_t shared_ffn() const { return shared_experts * expert_ffn_hidden; }
  bool has_experts(std::int64_t layer) const { return moe_layers(layer, 1) > 0; }
  // The number of the pattern's layers of this letter in [first, first + count).
  std::int64_t layers_of(char letter, std::int64_t first, std::int64_t count) const;
  // The number of layers with experts in [first, first + count).
  std::int64_t moe_layers(std::int64_t first, std::int64_t count) const;
  bool mixes_layers() const {  // both dense and expert layers, a pattern, or two stacks
    if (!layer_pattern.empty()) return true;
    const std::int64_t sparse = moe_layers(0, layers);
    return (sparse > 0 && sparse < layers) || encoder_decoder();
  }
};

}  // namespace costmodel
