#include "runtime/cpu/qk_norm.hpp"

#include <algorithm>
#include <stdexcept>

#include "runtime/cpu/norm_rows.hpp"

namespace runtime::cpu {

using namespace costmodel;

namespace {

template <class T>
void expect_vectors(const Norm& op, const QkVectors<T>& vectors) {
  const std::int64_t shifts = op.kind == Normalization::layernorm ? op.cols : 0;
  expect_size(vectors.q_gain.size(), op.cols, "q_gain");
  expect_size(vectors.k_gain.size(), op.cols, "k_gain");
  expect_size(vectors.q_shift.size(), shifts, "q_shift");
  expect_size(vectors.k_shift.size(), shifts, "k_shift");
}

void expect_layout(const Norm& op, const HeadLayout& layout) {
  if (op.cols != layout.head_dim || op.rows != layout.tokens() * (layout.heads + layout.kv_heads))
    throw std::invalid_argument("the norm of queries and keys has another layout");
}

template <class T>
T* pointer(std::span<T> vector) {
  return vector.empty() ? nullptr : vector.data();
}

// visit(offset of the head's first element, gain, shift) for each query and key head of each token.
template <class T, class Visit>
void for_each_head(const HeadLayout& layout, const QkVectors<T>& vectors, Visit visit) {
  for (std::int64_t token = 0; token < layout.tokens(); ++token) {
    for (std::int64_t head = 0; head < layout.heads + layout.kv_heads; ++head) {
      const bool query = head < layout.heads;
      visit(token * layout.columns() + head * layout.head_dim,
            pointer(query ? vectors.q_gain : vectors.k_gain),
            pointer(query ? vectors.q_shift : vectors.k_shift));
    }
  }
}

template <class T>
void copy_values(const HeadLayout& layout, const T* from, T* to) {
  const std::int64_t width = layout.kv_heads * layout.head_dim;
  for (std::int64_t token = 0; token < layout.tokens(); ++token) {
    const std::int64_t first = token * layout.columns() + layout.columns() - width;
    if (to != from) std::copy_n(from + first, width, to + first);
  }
}

}  // namespace

template <class T>
void qk_norm_forward(const Norm& op, const HeadLayout& layout, In<T> qkv,
                     const std::type_identity_t<QkVectors<const T>>& weights, Out<T> y) {
  expect_layout(op, layout);
  expect_vectors(op, weights);
  expect_size(qkv.size(), layout.tokens() * layout.columns(), "qkv");
  expect_size(y.size(), layout.tokens() * layout.columns(), "y");
  for_each_head(layout, weights, [&](std::int64_t first, const T* gain, const T* shift) {
    const T* x = qkv.data() + first;
    norm_row_forward(op.cols, norm_row_statistics(op.kind, op.cols, x), x, gain, shift,
                     y.data() + first);
  });
  copy_values(layout, qkv.data(), y.data());
}

template <class T>
void qk_norm_input_gradient(const Norm& op, const HeadLayout& layout, In<T> qkv,
                            const std::type_identity_t<QkVectors<const T>>& weights, In<T> dy,
                            Out<T> dqkv) {
  expect_layout(op, layout);
  expect_vectors(op, weights);
  expect_size(qkv.size(), layout.tokens() * layout.columns(), "qkv");
  expect_size(dy.size(), layout.tokens() * layout.columns(), "dy");
  expect_size(dqkv.size(), layout.tokens() * layout.columns(), "dqkv");
  for_each_head(layout, weights, [&](std::int64_t first, const T* gain, const T*) {
    const T* x = qkv.data() + first;
    norm_row_input_gradient(op.kind, op.cols, norm_row_statistics(op.kind, op.cols, x), x, gain,
                            dy.data() + first, dqkv.data() + first);
  });
  copy_values(layout, dy.data(), dqkv.data());
}

template <class T>
void qk_norm_weight_gradient(const Norm& op, const HeadLayout& layout, In<T> qkv, In<T> dy,
                             const std::type_identity_t<QkVectors<T>>& gradients) {
  expect_layout(op, layout);
  expect_vectors(op, gradients);
  expect_size(qkv.size(), layout.tokens() * layout.columns(), "qkv");
  expect_size(dy.size(), layout.tokens() * layout.columns(), "dy");
  for_each_head(layout, gradients, [&](std::int64_t first, T* dgain, T* dshift) {
    const T* x = qkv.data() + first;
    norm_row_weight_gradient(op.cols, norm_row_statistics(op.kind, op.cols, x), x,
                             dy.data() + first, dgain, dshift);
  });
}

template decltype(qk_norm_forward<float>) qk_norm_forward<float>;
template decltype(qk_norm_forward<double>) qk_norm_forward<double>;
template decltype(qk_norm_input_gradient<float>) qk_norm_input_gradient<float>;
template decltype(qk_norm_input_gradient<double>) qk_norm_input_gradient<double>;
template decltype(qk_norm_weight_gradient<float>) qk_norm_weight_gradient<float>;
template decltype(qk_norm_weight_gradient<double>) qk_norm_weight_gradient<double>;

}  // namespace runtime::cpu
