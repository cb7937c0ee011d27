// The architecture of a model: its sizes and the choices that change its operators. No parallelism.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "costmodel/model/block.hpp"

namespace costmodel {

enum class ModelKind { gpt, llama, moe, mamba, t5, hybrid };
// relative: a bias added to the attention scores by distance, from one table per stack (Raffel et
// al. 2020, arXiv:1910.10683, section 2.1).
enum class Positions { learned, rotary, alibi, none, relative };
// How a router turns scores into weights of experts: softmax over the chosen ones, softmax over all
// before the choice (DeepSeek-V2), or a sigmoid of each (DeepSeek-V3, arXiv:2412.19437, eq. 15).
enum class RouterScore { softmax, pre_softmax, sigmoid };
// layernorm_no_bias: LayerNorm with a weight alone (Cohere).
enum class Normalization { layernorm, rmsnorm, layernorm_no_bias };
// How rotary positions are stretched beyond the length that a model was trained at (transformers,
// modeling_rope_utils.py): Llama 3.1's by bands of frequency, YaRN's (arXiv:2309.00071), all
// frequencies by one factor, a factor of the length, LongRoPE's (arXiv:2402.13753).
enum class RopeScaling { none, llama3, yarn, linear, dynamic, longrope };
// Of the weights as their publisher has them (quantization_config of a config.json).
enum class CheckpointFormat { bf16, fp8, int8, int4, nvfp4, mxfp4 };
enum class ActivationFunction { gelu, relu, squared_relu, silu };
// Where the norms of a layer stand. before: on what attention and MLP read (GPT-2). both: on what
// they read and on their results (Gemma 2, arXiv:2408.00118, section 2). branch: on their results
// alone, before the residual is added (OLMo 2, arXiv:2501.00656, section 3.2). after: on the sum of
// result and residual (Vaswani et al. 2017; BERT), and then none stands before the head.
enum class NormPlacement { before, both, branch, after };

inline constexpr std::array<std::string_view, 6> model_kind_names{"gpt",   "llama", "moe",
                                                                  "mamba", "t5",    "hybrid"};
inline constexpr std::array<std::string_view, 5> positions_names{"learned", "rotary", "alibi",
                                                                 "none", "relative"};
inline constexpr std::array<std::string_view, 3> router_score_names{"softmax", "pre-softmax",
                                                                    "sigmoid"};
inline constexpr std::array<std::string_view, 3> normalization_names{"layernorm", "rmsnorm",
                                                                     "layernorm-no-bias"};
inline constexpr std::array<std::string_view, 6> rope_scaling_names{
    "none", "llama3", "yarn", "linear", "dynamic", "longrope"};
inline constexpr std::array<std::string_view, 6> checkpoint_names{"bf16", "fp8",   "int8",
                                                                  "int4", "nvfp4", "mxfp4"};
inline constexpr std::array<std::string_view, 4> norm_placement_names{"before", "both", "branch",
                                                                      "after"};
inline constexpr std::array<std::string_view, 4> activation_names{"gelu", "relu", "squared-relu",
                                                                  "silu"};

inline constexpr std::int64_t relative_buckets = 32;  // rows of T5's table; one column per head

// Numbers of the function that a model computes. They change neither its time nor its memory, but a
// script that lacks one trains another model. The names are those of config.json.
struct ModelNumbers {
  double norm_epsilon = 0;    // of all normalisations; 0: not known, the framework's own
  bool layernorm_1p = false;  // a norm's weights are stored less 1 (Nemotron-4)
  // Of rotary positions: the base, the part of a head that is rotated, and how they are stretched.
  double rotary_base = 10'000, rotary_percent = 1;
  RopeScaling rope_scaling = RopeScaling::none;
  double rope_scaling_factor = 0;                              // 0: none
  std::int64_t rope_original_positions = 0;                    // the length before; 0: not known
  double rope_low_freq_factor = 0, rope_high_freq_factor = 0;  // Llama 3.1's: 1 and 4
  double rope_beta_fast = 0, rope_beta_slow = 0;               // YaRN's: 32 and 1
  double rope_mscale = 0, rope_mscale_all_dim = 0;             // DeepSeek's, of YaRN; 0: not given
  double activation_clamp = 0;  // both halves of a gated activation are cut at it (gpt-oss); 0: no
  double glu_offset = 0;        // added to the half that is not activated (gpt-oss: 1)
  double attention_softcap = 0, logits_softcap = 0;  // c tanh(x / c) of them (Gemma 2); 0: none
  double embedding_multiplier = 1, residual_multiplier = 1, logits_scaling = 1;  // Granite's
  double attention_multiplier = 0;  // in place of 1 / sqrt(head_dim); 0: that
};

// Attention: softmax(Q Kᵀ) V over heads of queries; heads of keys and values may be shared.
struct AttentionFields {
  std::int64_t heads = 0;     // a
  std::int64_t kv_heads = 0;  // a for multi-head, 1 for multi-query attention
  std::int64_t head_dim = 0;  // of queries and keys
  bool qkv_bias = true;
  bool qk_norm = false;             // normalised queries and keys (Qwen3)
  bool qk_norm_whole = false;       // ... over all heads at once, not head by head (OLMo 2)
  bool qk_norm_gains = true;        // ... times weights (not Llama 4's)
  bool attention_gate = false;      // the result times a sigmoid (Qwen3-Next)
  bool head_gate = false;           // ... of one logit a head (Step 3.5)
  bool attention_sinks = false;     // a learned logit for each head in its softmax (gpt-oss)
  bool causal = true;               // no token attends to later ones
  std::int64_t sliding_window = 0;  // a query attends to itself and as many less one before; 0: all
  std::int64_t attention_chunk = 0;  // tokens of a chunk, to which attention is confined; 0: none
  // Of layers with a window, where others have none: heads, those of keys and values, and their
  // size (0: as the others), and sinks in them alone; of the others, values that are the keys'
  // product (Gemma 4).
  std::int64_t window_heads = 0, window_kv_heads = 0, window_head_dim = 0;
  bool window_sinks = false, keys_as_values = false;
};

// Multi-head latent attention (DeepSeek-V2, arXiv:2405.04434, section 2.1): the keys and values of
// all heads are projected up from one latent vector per token, the queries from another. The names
// are Megatron's.
struct LatentAttentionFields {
  std::int64_t kv_lora_rank = 0;         // 0: standard attention
  std::int64_t q_lora_rank = 0;          // 0: queries are projected directly from the hidden state
  std::int64_t qk_head_dim = 0;          // of queries and keys without the rotary part
  std::int64_t qk_pos_emb_head_dim = 0;  // the rotary part; all heads share its key
  std::int64_t v_head_dim = 0;           // 0: head_dim; of other attention too (MiMo-V2)
  // The indexer of sparse attention (DeepSeek-V3.2, arXiv:2512.02556, section 2.1): its heads of
  // queries share one key a token, and each query attends to the index_topk keys they score best.
  std::int64_t index_heads = 0, index_head_dim = 0, index_topk = 0;
};

// A gated delta net (Yang et al. 2024, arXiv:2412.06464), or Kimi delta attention: a linear
// recurrence in place of attention. The names are Megatron's.
struct DeltaNetFields {
  std::int64_t linear_num_key_heads = 0, linear_num_value_heads = 0;
  std::int64_t linear_key_head_dim = 0, linear_value_head_dim = 0;
};

// Mamba-2 (Dao and Gu 2024, arXiv:2405.21060): a state-space scan over heads of channels.
struct ScanFields {
  std::int64_t state_size = 0;  // N; 0: no scan
  std::int64_t ssm_groups = 0;  // all heads of a group share B and C
  std::int64_t conv_kernel = 0;
  // Mamba-1 (Gu and Dao 2023, arXiv:2312.00752, section 3): every channel is a head with a decay of
  // its own for each state; its time step comes from a product of this rank. 0: Mamba-2.
  std::int64_t dt_rank = 0;
  // Of a model that has attention too; 0: the scan's are heads and head_dim.
  std::int64_t mamba_heads = 0, mamba_head_dim = 0;
  bool scan_norms = false;       // of Mamba-1's time step, B and C (Jamba)
  bool scan_output_norm = true;  // of Mamba-2's result (not Falcon-H1's)
};

// RWKV-7's time mixing (arXiv:2503.14456, section 4): the ranks of the products that decay, rate,
// value and gate come from. Its heads are attention's.
struct RwkvFields {
  std::int64_t rwkv_decay_rank = 0, rwkv_rate_rank = 0, rwkv_value_rank = 0, rwkv_gate_rank = 0;
};

// Mixture of experts (Shazeer et al. 2017, arXiv:1701.06538): some layers have `experts` MLPs, of
// which each token uses top_k, and shared MLPs that every token uses.
struct ExpertFields {
  std::int64_t experts = 0;  // 0: all layers are dense
  std::int64_t top_k = 0;
  std::int64_t expert_ffn_hidden = 0;
  std::int64_t shared_experts = 0;  // each as wide as an expert
  bool shared_expert_gate = false;  // their result times a sigmoid of one product
  // Norms of their own: of what the router and the routed experts read, and of both results; and a
  // weight that scales each expert (Gemma 4).
  bool expert_norms = false;
  // Routed experts work on vectors of this size, projected from h before they are sent and back to
  // h after (Nemotron 3; Megatron's --moe-latent-size). 0: on h.
  std::int64_t moe_latent_size = 0;
  std::int64_t first_dense_layers = 0;  // the first layers have a dense MLP of width ffn_hidden
  // Of the others, layer i has experts when i - moe_offset is a multiple of moe_every.
  std::int64_t moe_every = 1, moe_offset = 0;
  // Group-limited routing (DeepSeek-V3, arXiv:2412.19437, section 2.1.2): a token chooses its top_k
  // within expert_groups_per_token of expert_groups groups. 0: among all experts.
  std::int64_t expert_groups = 0, expert_groups_per_token = 0;
  // What the router computes costs nothing that shows, but is exported: its score, a bias for each
  // expert in place of a loss that balances them (section 2.1.2 there), and a factor on the
  // weights.
  RouterScore router_score = RouterScore::softmax;
  bool router_bias = false;
  double router_scaling = 1;
};

// Encoder-decoder (T5: arXiv:1910.10683, section 2.1): `layers` counts both stacks, the encoder's
// first. A decoder layer has self-attention and cross-attention to the encoder's output.
struct StackFields {
  std::int64_t encoder_layers = 0;  // 0: a decoder-only model
  std::int64_t decoder_layers = 0;
  // Of a decoder layer where they are not the encoder's; both share hidden and head_dim, which
  // cross-attention needs.
  std::int64_t decoder_heads = 0, decoder_ffn_hidden = 0;  // 0: heads, ffn_hidden
};

// Of the published weights: their format; and of narrow ones, what keeps 16 bits: attention's
// products, all but routed experts, and so many of the first and of the last layers.
struct CheckpointFields {
  CheckpointFormat checkpoint = CheckpointFormat::bf16;
  bool unquantized_attention = false, unquantized_dense = false;
  std::int64_t unquantized_layers = 0;
  std::optional<double> published_parameters;
  std::string source;
};

struct Towers;  // costmodel/model/tower.hpp

struct ModelSpec : ModelNumbers,
                   AttentionFields,
                   LatentAttentionFields,
                   DeltaNetFields,
                   ScanFields,
                   RwkvFields,
                   ExpertFields,
                   StackFields,
                   CheckpointFields {
  std::string name;
  std::string title;
  ModelKind kind = ModelKind::gpt;
  std::int64_t layers = 0;  // l
  std::int64_t hidden = 0;  // h
  std::int64_t ffn_hidden = 0;
  bool gated_mlp = false;  // gate and up projections, multiplied (SwiGLU)
  ActivationFunction activation = ActivationFunction::gelu;
  std::int64_t vocab = 0;          // V, before padding
  bool tie_embeddings = true;      // output projection shares the token embedding
  std::int64_t embedding_dim = 0;  // of the token table, projected to h and back (OPT 350M); 0: h
  bool embedding_norm = false;     // a normalisation after the embedding (BLOOM)
  Positions positions = Positions::learned;
  std::int64_t max_positions = 0;   // rows of the learned table
  std::int64_t context_length = 0;  // tokens that it takes, prompt and answer; 0: not known
  Normalization normalization = Normalization::layernorm;
  NormPlacement norm_placement = NormPlacement::before;
  bool linear_bias = true;
  bool parallel_block = false;  // attention and MLP in parallel on one input (GPT-NeoX)
  bool shared_norm = false;     // ... after one norm for both (Falcon 7B)
  // Bidirectional encoders (BERT, arXiv:1810.04805, section 3): a table of token types, and before
  // the logits a product, an activation and a norm; the logits then have a bias. The pooler is a
  // product over the first token.
  std::int64_t token_types = 0;
  bool head_transform = false, pooler = false;
  // The mixers of its layers, one letter a layer, repeated (mixer_rows()). Empty: full attention in
  // all, or a window where there is one.
  std::string attention_pattern;
  // A hybrid: one letter a layer (pattern_letters()), each with its norm and residual.
  std::string layer_pattern;
  // Multi-token prediction (DeepSeek-V3, section 2.2): further layers, each with a projection of 2h
  // to h and the head again, on the last stage.
  std::int64_t mtp_layers = 0;
  double dropout = 0;                    // of embedding, attention and hidden states
  std::shared_ptr<const Towers> towers;  // null: it reads nothing but text
  std::vector<std::string> assumed;      // keys missing in the description
  std::string questioned;  // what a base's sizes no longer fit, for people; empty: none

  std::int64_t query_size() const { return heads * head_dim; }  // columns of Q
  std::int64_t kv_size() const { return kv_heads * head_dim; }  // columns of K, and of V
  // Columns of an attention's gate, which are projected with Q, K and V.
  std::int64_t gate_size() const { return attention_gate ? query_size() : head_gate ? heads : 0; }
  // What every layer's heads are a multiple of: a tensor rank has as many in each.
  std::int64_t common_heads() const { return std::gcd(heads, window_heads); }
  std::string heads_text() const;  // of both kinds of layers, for people: "64 and 96"
  std::int64_t value_dim() const { return v_head_dim > 0 ? v_head_dim : head_dim; }
  std::int64_t scan_heads() const { return mamba_heads > 0 ? mamba_heads : heads; }
  std::int64_t scan_head_dim() const { return mamba_heads > 0 ? mamba_head_dim : head_dim; }
  std::int64_t scan_width() const { return scan_heads() * scan_head_dim(); }
  // Channels of the convolution: those of x, B and C.
  std::int64_t conv_channels() const { return scan_width() + 2 * ssm_groups * state_size; }
  std::int64_t embedding_width() const { return embedding_dim > 0 ? embedding_dim : hidden; }
  std::int64_t expert_width() const { return moe_latent_size > 0 ? moe_latent_size : hidden; }
  std::int64_t delta_key_width() const { return linear_num_key_heads * linear_key_head_dim; }
  std::int64_t delta_value_width() const { return linear_num_value_heads * linear_value_head_dim; }
  // Norms on attention and on the MLP, each.
  std::int64_t norms() const { return norm_placement == NormPlacement::both ? 2 : 1; }
  // No choices beyond GPT-3's and Llama's in attention, embedding or the places of norms; windows
  // are another question.
  bool plain_block() const {
    return causal && towers == nullptr && !head_transform && !pooler && token_types == 0 &&
           linear_num_value_heads == 0 && attention_chunk == 0 && index_heads == 0 &&
           attention_pattern.find_first_not_of("FS") == std::string::npos && qk_norm_gains &&
           normalization != Normalization::layernorm_no_bias &&
           norm_placement == NormPlacement::before && !qk_norm_whole && !attention_gate &&
           !head_gate && !attention_sinks && !windows_differ() &&
           (v_head_dim == 0 || latent_attention()) && embedding_dim == 0 && !shared_norm &&
           !shared_expert_gate && !expert_norms && moe_latent_size == 0;
  }
  // Whether a window cuts attention over so many tokens.
  bool windowed(std::int64_t sequence) const {
    return sliding_window > 0 && sliding_window < sequence;
  }
  bool final_norm() const { return norm_placement != NormPlacement::after; }
  // The block of a layer, and the kinds of blocks that the model has, in the order in which they
  // are counted and listed: a hybrid's by pattern_letters(), else by mixer, dense ones first.
  Block block_at(std::int64_t layer) const;
  std::vector<Block> blocks() const;
  // Whether a layer keeps a state in place of a cache of keys.
  bool recurrent() const;
  // Whether every layer attends to keys by their place alone: no state, no indexer. What context
  // parallelism cuts, and what serving caches.
  bool attends_by_place() const { return !recurrent() && index_heads == 0; }
  // What attends beyond or short of a packed sample, in words; null: nothing does.
  const char* unpacked() const;
  // The letter of attention_pattern for a layer; F, or S with a window in all layers, without one.
  char attention_at(std::int64_t layer) const;
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
  // Whether layers with a window have other sizes than those without, and the model all of whose
  // layers have these.
  bool windows_differ() const {
    return window_heads > 0 || window_kv_heads > 0 || window_head_dim > 0 || window_sinks ||
           keys_as_values;
  }
  ModelSpec as_windowed() const {
    ModelSpec own = *this;
    if (window_heads > 0) own.heads = window_heads;
    if (window_kv_heads > 0) own.kv_heads = window_kv_heads;
    if (window_head_dim > 0) own.head_dim = window_head_dim;
    if (window_sinks) own.attention_sinks = true;
    own.window_heads = own.window_kv_heads = own.window_head_dim = 0;
    own.window_sinks = own.keys_as_values = false;
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
    if (!layer_pattern.empty() || !attention_pattern.empty()) return true;
    const std::int64_t sparse = moe_layers(0, layers);
    return (sparse > 0 && sparse < layers) || encoder_decoder();
  }
};

}  // namespace costmodel
