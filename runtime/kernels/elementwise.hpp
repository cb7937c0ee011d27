// Element kernels, whose elements are independent: kernel(i) is called for each i below the count
// in the comment next to each. Tensors, shapes and papers as in runtime/cpu.
#pragma once

#include "runtime/cpu/head_layout.hpp"
#include "runtime/cpu/optimizer.hpp"
#include "runtime/cpu/token_draw.hpp"
#include "runtime/kernels/portable.hpp"

namespace runtime::kernels {

// GELU is x · sigmoid(2u) with u = √(2/π) · (x + 0.044715 · x³).
inline constexpr float gelu_slope = 1.5957691216057308F;
inline constexpr float gelu_cubic = gelu_slope * 0.044715F;

RUNTIME_PORTABLE float gelu(float x) { return x * sigmoid(x * (gelu_slope + gelu_cubic * x * x)); }

RUNTIME_PORTABLE float gelu_derivative(float x) {
  const float square = x * x, s = sigmoid(x * (gelu_slope + gelu_cubic * square));
  return s + x * s * (1 - s) * (gelu_slope + 3 * gelu_cubic * square);
}

template <class T>
struct Gelu {  // count: elements
  const T* x;
  T* y;
  RUNTIME_PORTABLE void operator()(Index i) const { y[i] = T(gelu(x[i])); }
};

// dx may be dy.
template <class T>
struct GeluGradient {  // count: elements
  const T* x;
  const T* dy;
  T* dx;
  RUNTIME_PORTABLE void operator()(Index i) const {
    dx[i] = T(float(dy[i]) * gelu_derivative(x[i]));
  }
};

template <class T>
struct SwiGlu {  // count: elements of y[rows, cols]
  Index cols;
  const T* x;
  T* y;
  RUNTIME_PORTABLE void operator()(Index i) const {
    const Index at = i / cols * 2 * cols + i % cols;
    const float gate = x[at], up = x[at + cols];
    y[i] = T(gate * sigmoid(gate) * up);
  }
};

template <class T>
struct SwiGluGradient {  // count: elements of dy[rows, cols]
  Index cols;
  const T* x;
  const T* dy;
  T* dx;
  RUNTIME_PORTABLE void operator()(Index i) const {
    const Index at = i / cols * 2 * cols + i % cols;
    const float gate = x[at], up = x[at + cols], d = dy[i], s = sigmoid(gate);
    dx[at] = T(d * up * s * (1 + gate * (1 - s)));
    dx[at + cols] = T(d * gate * s);
  }
};

// Rotates a pair of a query or key head, or copies a value. y may be x.
template <class T>
struct Turn {  // count: tokens · per_token()
  cpu::HeadLayout layout;
  const float* cosine;
  const float* sine;
  float direction;  // 1: forward, -1: backward
  const T* x;
  T* y;
  constexpr Index half() const { return layout.head_dim / 2; }
  constexpr Index pairs() const { return (layout.heads + layout.kv_heads) * half(); }
  constexpr Index per_token() const { return pairs() + layout.kv_heads * layout.head_dim; }
  RUNTIME_PORTABLE void operator()(Index i) const {
    const Index token = i / per_token(), place = i % per_token(), row = token * layout.columns();
    if (place >= pairs()) {
      const Index at = row + (layout.heads + layout.kv_heads) * layout.head_dim + place - pairs();
      y[at] = x[at];
      return;
    }
    const Index angle = token % layout.s * half() + place % half();
    const Index at = row + place / half() * layout.head_dim + place % half();
    const float first = x[at], second = x[at + half()];
    const float c = cosine[angle], s = direction * sine[angle];
    y[at] = T(first * c - second * s);
    y[at + half()] = T(second * c + first * s);
  }
};

template <class T>
struct EmbeddingRows {  // count: rows · cols
  Index cols, vocab, first_token;
  const std::int64_t* tokens;
  const T* table;
  T* y;
  RUNTIME_PORTABLE void operator()(Index i) const {
    const Index token = tokens[i / cols] - first_token;
    y[i] = token >= 0 && token < vocab ? table[token * cols + i % cols] : T(0.0F);
  }
};

struct TokenIds {  // count: draw.count()
  cpu::TokenDraw draw;
  std::int64_t* ids;
  RUNTIME_PORTABLE void operator()(Index i) const { ids[i] = draw.id(i); }
};

// The gradient of the table, after TokenLinks (rows.hpp): the first row with a token adds up all
// rows with it, in their order, so that the order of summation is fixed without atomics.
template <class T>
struct EmbeddingGradient {  // count: rows · cols
  Index rows, cols, vocab, first_token;
  const std::int64_t* tokens;
  const std::int32_t* links;
  const T* dy;
  float* dtable;
  RUNTIME_PORTABLE void operator()(Index i) const {
    const Index first = i / cols, col = i % cols, token = tokens[first] - first_token;
    if (links[first] < 0 || token < 0 || token >= vocab) return;
    float sum = dtable[token * cols + col];
    for (Index row = first; row < rows; row = next_row(links[row]))
      sum += float(dy[row * cols + col]);
    dtable[token * cols + col] = sum;
  }
  static constexpr Index next_row(std::int32_t link) { return link >= 0 ? link : ~link; }
};

template <class T>
struct AddPositions {  // count: rows · cols
  Index cols;
  cpu::RowPositions rows;
  const T* x;
  const T* table;
  T* y;
  RUNTIME_PORTABLE void operator()(Index i) const {
    y[i] = T(float(x[i]) + float(table[rows.at(i / cols) * cols + i % cols]));
  }
};

template <class T>
struct PositionGradient {  // count: min(s, positions) · cols
  Index count, cols;       // rows of dy
  cpu::RowPositions rows;
  const T* dy;
  float* dtable;
  RUNTIME_PORTABLE void operator()(Index i) const {
    const Index position = i / cols, col = i % cols;
    const Index first = ((position - rows.first_row) % rows.s + rows.s) % rows.s;
    float sum = dtable[i];
    for (Index row = first; row < count; row += rows.s) sum += float(dy[row * cols + col]);
    dtable[i] = sum;
  }
};

// dlogits may be softmax.
template <class Softmax, class T>
struct CrossEntropyGradient {  // count: rows · cols
  Index cols, first_token;
  const std::int64_t* targets;
  float scale;
  const Softmax* softmax;
  T* dlogits;
  RUNTIME_PORTABLE void operator()(Index i) const {
    const float at_target = targets[i / cols] - first_token == i % cols ? 1.0F : 0.0F;
    dlogits[i] = T((float(softmax[i]) - at_target) * scale);
  }
};

// Copies the value heads of a qkv tensor, which a norm of queries and keys leaves unchanged.
template <class T>
struct CopyValues {  // count: tokens · kv_heads · head_dim
  cpu::HeadLayout layout;
  const T* from;
  T* to;
  RUNTIME_PORTABLE void operator()(Index i) const {
    const Index width = layout.kv_heads * layout.head_dim;
    const Index at = (i / width + 1) * layout.columns() - width + i % width;
    to[at] = from[at];
  }
};

template <class T, class Result>
struct AddBias {  // count: elements of y[rows, cols]
  Index cols;
  const T* bias;
  Result* y;
  RUNTIME_PORTABLE void operator()(Index i) const {
    y[i] = Result(float(y[i]) + float(bias[i % cols]));
  }
};

template <class T>
struct AddTo {  // count: elements
  const T* other;
  T* values;
  RUNTIME_PORTABLE void operator()(Index i) const {
    values[i] = T(float(values[i]) + float(other[i]));
  }
};

template <class T>
struct LargerOf {  // count: elements
  const T* other;
  T* values;
  RUNTIME_PORTABLE void operator()(Index i) const {
    values[i] = T(larger(float(values[i]), float(other[i])));
  }
};

template <class T>
struct Rounded {  // count: elements
  const float* from;
  T* to;
  RUNTIME_PORTABLE void operator()(Index i) const { to[i] = T(from[i]); }
};

// Sets `found` to 1 when a value is infinite or NaN. Concurrent writers write the same value.
struct FindInfinite {  // count: elements
  const float* values;
  double* found;
  RUNTIME_PORTABLE void operator()(Index i) const {
    if (!(values[i] >= lowest_float && values[i] <= -lowest_float)) *found = 1;
  }
};

// AdamW for one parameter.
RUNTIME_PORTABLE float adam_step(const cpu::AdamFigures<float>& f, float gradient, float& param,
                                 float& m, float& v) {
  const float g = gradient * f.scale;
  m = f.beta1 * m + f.rest1 * g;
  v = f.beta2 * v + f.rest2 * g * g;
  param -= f.decay * param + f.rate * m / (square_root(v * f.correction) + f.eps);
  return param;
}

struct AdamStep {  // count: elements
  cpu::AdamFigures<float> f;
  float* params;
  const float* grads;
  float* m;
  float* v;
  RUNTIME_PORTABLE void operator()(Index i) const { adam_step(f, grads[i], params[i], m[i], v[i]); }
};

// One of the tensors that a single kernel updates: elements from `begin` to the next entry's
// `begin`.
struct AdamEntry {
  Index begin;
  float* params;
  const float* grads;
  float* m;
  float* v;
  void* rounded;  // 16-bit copy of the parameters, or null
  Number number;  // format of `rounded`
  bool operator==(const AdamEntry&) const = default;
};

struct AdamSteps {  // count: elements of all tensors
  cpu::AdamFigures<float> f;
  Index tensors;
  const AdamEntry* list;  // sorted by `begin`, starting at 0
  RUNTIME_PORTABLE void operator()(Index i) const {
    Index low = 0, high = tensors;
    while (high - low > 1) {
      const Index middle = (low + high) / 2;
      (list[middle].begin <= i ? low : high) = middle;
    }
    const AdamEntry t = list[low];
    const Index at = i - t.begin;
    const float param = adam_step(f, t.grads[at], t.params[at], t.m[at], t.v[at]);
    if (t.rounded == nullptr) return;
    if (t.number == Number::f16)
      static_cast<F16*>(t.rounded)[at] = F16(param);
    else
      static_cast<Bf16*>(t.rounded)[at] = Bf16(param);
  }
};

}  // namespace runtime::kernels
