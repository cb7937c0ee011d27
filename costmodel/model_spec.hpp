// What a transformer is: its sizes and the choices that change its operators. Shapes only, no
// parallelism.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "costmodel/config_value.hpp"

namespace costmodel {

enum class ModelKind { gpt, llama };
enum class Positions { learned, rotary, alibi, none };
enum class Normalization { layernorm, rmsnorm };
enum class ActivationFunction { gelu, relu, squared_relu, silu };

inline constexpr std::array<std::string_view, 2> model_kind_names{"gpt", "llama"};
inline constexpr std::array<std::string_view, 4> positions_names{"learned", "rotary", "alibi",
                                                                 "none"};
inline constexpr std::array<std::string_view, 2> normalization_names{"layernorm", "rmsnorm"};
inline constexpr std::array<std::string_view, 4> activation_names{"gelu", "relu", "squared-relu",
                                                                  "silu"};

struct ModelSpec {
  std::string name;
  std::string title;
  ModelKind kind = ModelKind::gpt;
  std::int64_t layers = 0;    // l
  std::int64_t hidden = 0;    // h
  std::int64_t heads = 0;     // a
  std::int64_t kv_heads = 0;  // a for multi-head, 1 for multi-query attention
  std::int64_t head_dim = 0;
  std::int64_t ffn_hidden = 0;
  bool gated_mlp = false;  // gate and up projections, multiplied (SwiGLU)
  ActivationFunction activation = ActivationFunction::gelu;
  std::int64_t vocab = 0;      // V, before padding
  bool tie_embeddings = true;  // output projection shares the token embedding
  Positions positions = Positions::learned;
  std::int64_t max_positions = 0;  // rows of the learned table
  Normalization normalization = Normalization::layernorm;
  bool linear_bias = true;
  bool qkv_bias = true;
  bool qk_norm = false;         // normalised queries and keys (Qwen3)
  bool embedding_norm = false;  // a normalisation after the embedding (BLOOM)
  bool parallel_block = false;  // attention and MLP side by side on one input sum (GPT-NeoX)
  double dropout = 0;           // of embedding, attention and hidden states
  std::optional<double> published_parameters;
  std::string source;
  std::vector<std::string>
      assumed;  // "vocab 50257 (family default)": keys the description left out

  std::int64_t query_size() const { return heads * head_dim; }  // columns of Q
  std::int64_t kv_size() const { return kv_heads * head_dim; }  // columns of K, and of V
  std::int64_t mlp_inner() const {
    return gated_mlp ? 2 * ffn_hidden : ffn_hidden;
  }  // columns of the first MLP product
};

// Parameters of the whole model, with the vocabulary as given (not padded). Narayanan et al. 2021
// (arXiv:2104.04473), eq. 2, gives 12·l·h²(1 + 13/12h + (V + s)/12lh) for the gpt kind; this is the
// exact count for every kind.
double parameter_count(const ModelSpec& model);
double parameters_per_layer(const ModelSpec& model);

// Reads a map with `kind`, ... Missing keys take the family's usual value and are listed in
// `assumed`. Throws ConfigError.
ModelSpec read_model(const Value& map, const std::string& name);

// The same map in canonical form (what `import hf` writes).
Value to_value(const ModelSpec& model);

}  // namespace costmodel
