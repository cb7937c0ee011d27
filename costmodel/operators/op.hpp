// The operators of one device, with local (sharded) shapes. An Op is a variant of structs with
// named fields. Every visitor lists every operator, so a new operator does not compile until all
// visitors handle it.
#pragma once

#include <cstdint>
#include <string_view>
#include <variant>

#include "costmodel/base/collective_kind.hpp"
#include "costmodel/base/pass.hpp"
#include "costmodel/base/precision.hpp"
#include "costmodel/base/units.hpp"
#include "costmodel/model/model_spec.hpp"
#include "costmodel/plan/axis.hpp"
#include "costmodel/plan/loss_kernel.hpp"

namespace costmodel {

// y[m, n] = x[m, k] · W[k, n] (+ bias). The shapes are local to this device.
struct Linear {
  std::int64_t m, n, k;
  bool bias;
  bool regather;  // the saved input is a sequence shard that is gathered again for the weight
                  // gradient
  bool bias_in_residual = false;  // the following residual adds the bias and computes its gradient
  bool wide = false;              // its operands stay in 16 bits where other products' are narrower
  bool narrow_weight = false;     // the weight is kept as narrow as its operand: only x is cast
  bool weight_once = false;       // a frozen one, by rows alone: transposed for each input gradient
};
// Of a product's operands, in a training whose products have `training`'s.
inline Precision precision_of(const Linear& op, Precision training) {
  return op.wide && is_narrow(training) ? Precision::bf16 : training;
}
// Grouped product: `experts` matrices, each with an equal share of the m rows. The router is
// assumed to balance its load, as its auxiliary loss intends.
struct GroupedLinear {
  std::int64_t m, n, k, experts;
  bool bias;
  Seconds start;               // time that every expert adds, whatever its rows
  bool casts_input = true;     // narrow operands are cast by kernels of their own
  bool narrow_weight = false;  // as of Linear
  bool grouped_mm = false;     // by PyTorch's kernel, where the device has what it is priced by
};
// A depthwise convolution along the sequence with `taps` taps, and its activation.
struct Convolution {
  std::int64_t rows, cols, taps;
  bool bias = true;
};
// What a scan does to its state with each token. state_space: decays it by one number a head and
// adds (Mamba-2). channels: decays each channel's states by numbers of their own, without products
// (Mamba-1, arXiv:2312.00752, section 3.3). delta: takes out what the key had stored, then adds
// (gated delta rule, Yang et al. 2024, arXiv:2412.06464, equation 10).
// rwkv: the same with a rate for each channel (arXiv:2503.14456, equation 17). linear: adds to a
// state that decays by a constant of the head (lightning attention).
enum class ScanRule { state_space, channels, delta, rwkv, linear };
// The chunked state-space scan of Mamba-2 (Dao and Gu 2024, arXiv:2405.21060, section 6): products
// within chunks and with the states between them. Of a delta net `groups` are the heads of keys,
// `state` is their size.
struct Scan {
  std::int64_t sequences, s, heads, head_dim, state, groups;
  std::int64_t chunk = 256;  // the authors' kernels use this
  ScanRule rule = ScanRule::state_space;
  std::int64_t decays = 1;  // of a delta net, numbers a head by which its state decays
  std::int64_t chunk_tokens() const { return s < chunk ? s : chunk; }
  std::int64_t chunks() const { return sequences * ceil_div(s, chunk_tokens()); }
};
// Turns the expert scores of each row into probabilities and selects the top_k.
struct Routing {
  std::int64_t rows, cols, top_k;
};
// Copies `rows` rows to the order of their experts, or back; each row to or from `copies` places.
struct Permute {
  std::int64_t rows, cols, copies;
  bool sums = false;  // back from the experts, where the copies of a row are added up
};
// The keys that a query reaches at most.
constexpr std::int64_t window_of(std::int64_t window, std::int64_t keys) {
  return window > 0 && window < keys ? window : keys;
}
// The part of a row of so many keys at most that a causal mask leaves, over a sequence of `keys`.
constexpr double unmasked_part(std::int64_t window, std::int64_t keys) {
  return 1 - static_cast<double>(window_of(window, keys)) / (2 * static_cast<double>(keys));
}
// scores[batch, s, keys] = Q · Kᵀ and context = P · V. `batch` counts (sequence, head) pairs.
struct AttentionScores {
  std::int64_t batch, s, head_dim;
  std::int64_t keys = 0;    // 0: s
  std::int64_t window = 0;  // of these the mask leaves so many at most; 0: all
  std::int64_t key_count() const { return keys > 0 ? keys : s; }
};
struct AttentionContext {
  std::int64_t batch, s, head_dim;
  std::int64_t keys = 0;    // 0: s
  std::int64_t window = 0;  // as of the scores
  std::int64_t key_count() const { return keys > 0 ? keys : s; }
};
// Scale, mask and softmax over rows, in one kernel when fused.
struct Softmax {
  std::int64_t rows, cols;
  bool fused;
  bool triangular = false;  // the kernel reads only unmasked scores, but writes all
  std::int64_t sinks = 0;   // learned logits, one a head, beside the scores
};
// Attention in one kernel that does not store the scores (Dao 2022, arXiv:2205.14135).
struct FlashAttention {
  std::int64_t sequences, s, heads, kv_heads, head_dim;
  bool causal_skip;
  bool second_generation = false;  // FlashAttention 2, on devices with a better kernel
  // Context parallelism: the s local queries attend to `keys` keys ...
  std::int64_t keys = 0;  // 0: s
  // ... in `blocks` blocks. Each block is a kernel, whose result is merged with the previous one's
  // (Liu et al. 2023, arXiv:2310.01889, section 3).
  std::int64_t blocks = 1;
  std::int64_t v_head_dim = 0;  // 0: head_dim
  bool cross = false;           // cross-attention: the keys are of another sequence and all local
  bool narrow = false;          // its products have fp8 operands
  bool sinks = false;           // a learned logit a head, beside the scores
  // A query attends to so many keys at most, itself the last; blocks outside are not computed.
  std::int64_t window = 0;  // 0: to all
  // Of packed samples: the tokens of a query's own sample, on average over queries, which it
  // attends to alone; 0: a sequence is one sample.
  double attended = 0;
  bool as_measured = false;  // by the device's table of this kernel, where it has one
  bool cudnn = false;        // which is cuDNN's
  std::int64_t value_dim() const { return v_head_dim > 0 ? v_head_dim : head_dim; }
  std::int64_t key_count() const { return keys > 0 ? keys : s; }
  double reach() const {  // keys of a query at most
    return attended > 0 ? attended : static_cast<double>(window_of(window, key_count()));
  }
  // The part of them that a causal mask leaves.
  double unmasked() const { return attended > 0 ? 0.5 : unmasked_part(window, key_count()); }
};
struct Dropout {
  std::int64_t rows, cols;
};
struct Norm {
  std::int64_t rows, cols;
  Normalization kind;
  int gains = 1;       // parameter vectors; 2 for queries and keys
  bool gated = false;  // of the product with a gate, in one kernel (Mamba-2)
};
// `cols` is the width of the result; a gated activation reads twice as many.
struct Activation {
  std::int64_t rows, cols;
  bool gated;
  bool fused_bias;
  bool in_product = false;  // part of the products around it: no kernel of its own
};
// residual + dropout(x + bias), in one kernel when fused.
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
  LossKernel kernel;
};
// Writes a weight of rows x cols values, stored in so many bytes each with their scales, in the
// width of activations, for the product after it (QLoRA, arXiv:2305.14314, equation 5). Backward
// does the same again for the input gradient.
struct Dequantise {
  std::int64_t rows, cols;
  double stored;
};
// y + scale · z of `cols` columns: what an adapter makes of an input of `inner` columns, added to
// its product's. Backward adds the adapter's input gradient to the product's. `scales`: z is scaled
// by a kernel of its own, else before the second matrix, where it is narrow.
struct AdapterSum {
  std::int64_t rows, cols, inner;
  bool scales;
};
// Kernels one after another over a tensor: bytes that they read and write an element, in all, how
// many they are, and how many functions call them. Of them `indexed` passes over all elements, with
// `indexed_bytes`, are by kernels that find or convert every element by itself.
struct Passes {
  double bytes;
  int kernels, calls;
  double indexed = 0, indexed_bytes = 0;
};
// What a framework computes of a tensor by such kernels, for which it has no fused one.
struct UnfusedPasses {
  std::int64_t rows, cols;
  Passes forward, backward;
};
// A collective along an axis. `bytes` is the full message (what every rank holds after an
// all-gather or all-reduce). Its backward is the conjugate collective (Shoeybi et al. 2019, f and
// g; Korthikanti et al. 2022, g and ḡ). `routed`: tokens whose experts and probabilities go with
// the message (see expert_exchange).
struct Collective {
  CollectiveKind forward, backward;
  Axis axis;
  Bytes bytes;
  double backward_factor = 1;  // backward message size relative to forward
  double routed = 0;
};

using Op = std::variant<Linear, Convolution, Scan, GroupedLinear, AttentionScores, AttentionContext,
                        Softmax, FlashAttention, Dropout, Norm, Activation, BiasDropoutAdd, Rotary,
                        Routing, Permute, Embedding, PositionEmbedding, CrossEntropy, Dequantise,
                        AdapterSum, UnfusedPasses, Collective>;

template <class... Cases>
struct Visitor : Cases... {
  using Cases::operator()...;
};
template <class... Cases>
Visitor(Cases...) -> Visitor<Cases...>;

std::string_view name_of(const Op& op);

// Number of parameters an operator has on this device: matrices, tables, biases, norm gains.
double weights_of(const Op& op);

// Whether its weights are expert weights, which are distributed and reduced over other ranks than
// the rest.
bool is_expert(const Op& op);

// Whether its time is that of a matrix product. All other operators are bound by memory traffic or,
// for a collective, by the network.
bool is_product(const Op& op);

// The work of one pass of an operator.
struct Work {
  Flops model;     // matrix-product FLOPs by the published convention: attention in full, no causal
                   // halving
  Flops executed;  // matrix-product FLOPs that the kernels execute
  Bytes moved;     // bytes read from and written to device memory
  int kernels = 0;
  Work& operator+=(const Work& o) {
    model += o.model;
    executed += o.executed;
    moved += o.moved;
    kernels += o.kernels;
    return *this;
  }
};

// `element` is the storage size of an activation element in bytes.
Work work_of(const Op& op, Pass pass, double element);

// Whether the operator has that pass (only operators with weights have a weight gradient).
bool has_pass(const Op& op, Pass pass);

}  // namespace costmodel
