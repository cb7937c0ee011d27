// The operators one device executes, with local (sharded) shapes. An Op is a variant with named
// fields; every visitor lists every operator, so that a new one does not compile until each of them
// knows it.
#pragma once

#include <cstdint>
#include <string_view>
#include <variant>
#include <vector>

#include "costmodel/base/collective_kind.hpp"
#include "costmodel/base/pass.hpp"
#include "costmodel/base/units.hpp"
#include "costmodel/model/model_spec.hpp"
#include "costmodel/plan/axis.hpp"

namespace costmodel {

// y[m, n] = x[m, k] · W[k, n] (+ bias). The shapes are this device's.
struct Linear {
  std::int64_t m, n, k;
  bool bias;
  bool regather;  // its saved input is sharded over the sequence and gathered again for the weight
                  // gradient
  bool bias_in_residual = false;  // the residual behind it adds the bias, and has its gradient
};
// The same for `experts` matrices at once, each with an equal share of the m rows (a grouped
// product): the router is taken to balance its load, as its auxiliary loss wants it to.
struct GroupedLinear {
  std::int64_t m, n, k, experts;
  bool bias;
};
// A depthwise convolution along the sequence with its activation, `taps` wide.
struct Convolution {
  std::int64_t rows, cols, taps;
};
// The state-space scan of Mamba-2 in chunks (Dao and Gu 2024, arXiv:2405.21060, section 6):
// products inside chunks and with the states between them.
struct Scan {
  std::int64_t sequences, s, heads, head_dim, state, groups;
  std::int64_t chunk = 256;  // of the authors' kernels
  std::int64_t chunk_tokens() const { return s < chunk ? s : chunk; }
  std::int64_t chunks() const { return sequences * ceil_div(s, chunk_tokens()); }
};
// Scores of each row's experts turned into probabilities and the top_k chosen.
struct Routing {
  std::int64_t rows, cols, top_k;
};
// Rows copied to where their experts (or their owners) want them: each of `rows` to or from so many
// places.
struct Permute {
  std::int64_t rows, cols, copies;
};
// scores[batch, s, keys] = Q · Kᵀ and context = P · V; batch counts (sequence, head) pairs.
struct AttentionScores {
  std::int64_t batch, s, head_dim;
  std::int64_t keys = 0;  // 0: s
  std::int64_t key_count() const { return keys > 0 ? keys : s; }
};
struct AttentionContext {
  std::int64_t batch, s, head_dim;
  std::int64_t keys = 0;  // 0: s
  std::int64_t key_count() const { return keys > 0 ? keys : s; }
};
// Scale, mask and softmax over rows; fused into one kernel or not.
struct Softmax {
  std::int64_t rows, cols;
  bool fused;
  bool triangular = false;  // the kernel reads what the causal mask leaves, and writes it all
};
// Attention in one kernel that keeps no scores (Dao 2022, arXiv:2205.14135). `kv_share` is heads /
// kv_heads.
struct FlashAttention {
  std::int64_t sequences, s, heads, kv_heads, head_dim;
  bool causal_skip;
  bool second_generation = false;  // FlashAttention 2, where the device has a better one
  // Context parallelism: these s queries of a rank see so many keys ...
  std::int64_t keys = 0;  // 0: s
  // ... which come in so many blocks, each a kernel of its own whose result is merged with the one
  // before (Liu et al. 2023, arXiv:2310.01889, section 3).
  std::int64_t blocks = 1;
  std::int64_t v_head_dim = 0;  // 0: head_dim
  bool cross = false;           // the keys are of another sequence, all of them this rank's
  std::int64_t value_dim() const { return v_head_dim > 0 ? v_head_dim : head_dim; }
  std::int64_t key_count() const { return keys > 0 ? keys : s; }
};
struct Dropout {
  std::int64_t rows, cols;
};
struct Norm {
  std::int64_t rows, cols;
  Normalization kind;
  int gains = 1;  // vectors of parameters: queries and keys have one each
};
// cols is the width of the result; a gated activation reads twice as much.
struct Activation {
  std::int64_t rows, cols;
  bool gated;
  bool fused_bias;
};
// residual + dropout(x + bias): one kernel when fused.
struct BiasDropoutAdd {
  std::int64_t rows, cols;
  bool bias, dropout, fused;
};
struct Rotary {
  std::int64_t rows, cols;
};
struct Embedding {
  std::int64_t rows, cols, vocab;
};
struct PositionEmbedding {
  std::int64_t rows, cols, positions;
};
// Vocabulary-parallel softmax cross-entropy over logits[rows, cols].
struct CrossEntropy {
  std::int64_t rows, cols;
  bool fused;
};
// A collective along an axis; `bytes` is the full message (what every rank holds after an
// all-gather or all-reduce). Its backward is another collective (Shoeybi et al. 2019, f and g;
// Korthikanti et al. 2022, g and ḡ).
struct Collective {
  CollectiveKind forward, backward;
  Axis axis;
  Bytes bytes;
  double backward_factor = 1;  // message of the backward collective, in forward ones
};

using Op = std::variant<Linear, Convolution, Scan, GroupedLinear, AttentionScores, AttentionContext,
                        Softmax, FlashAttention, Dropout, Norm, Activation, BiasDropoutAdd, Rotary,
                        Routing, Permute, Embedding, PositionEmbedding, CrossEntropy, Collective>;

template <class... Cases>
struct Visitor : Cases... {
  using Cases::operator()...;
};
template <class... Cases>
Visitor(Cases...) -> Visitor<Cases...>;

std::string_view name_of(const Op& op);

// The parameters an operator holds on this device: matrices, tables, biases, norm gains.
double weights_of(const Op& op);

// Whether it holds weights of experts, which are dealt out and summed over other ranks than the
// rest.
bool is_expert(const Op& op);

// Whether its time is a matrix product's; everything else moves bytes (or, a collective, is the
// network's).
bool is_product(const Op& op);

// What one pass of an operator does.
struct Work {
  Flops model;     // matrix-product FLOPs by the published convention: attention in full, no causal
                   // halving
  Flops executed;  // matrix-product FLOPs the kernels really do
  Bytes moved;     // to and from device memory
  int kernels = 0;
  Work& operator+=(const Work& o) {
    model += o.model;
    executed += o.executed;
    moved += o.moved;
    kernels += o.kernels;
    return *this;
  }
};

// `element` is the storage size of an activation in bytes.
Work work_of(const Op& op, Pass pass, double element);

// Whether the operator has that pass at all (only weights have a weight gradient).
bool has_pass(const Op& op, Pass pass);

}  // namespace costmodel
