// Normalises every query and key head separately (Henry et al. 2020, arXiv:2010.04245, as later
// models use it: a norm with gains over head_dim), on a qkv tensor. Queries share one gain, keys
// another; values are copied. op.rows = tokens · (heads + kv_heads), op.cols = head_dim. The
// backward keeps only the input and recomputes the statistics. All throw std::invalid_argument on a
// tensor of the wrong size.
#pragma once

#include "costmodel/operators/op.hpp"
#include "runtime/cpu/head_layout.hpp"
#include "runtime/cpu/view.hpp"

namespace runtime::cpu {

// Each [head_dim]; the shifts are empty for RMSNorm.
template <class T>
struct QkVectors {
  std::span<T> q_gain, k_gain, q_shift, k_shift;
};

template <class T = float>
void qk_norm_forward(const costmodel::Norm& op, const HeadLayout& layout, In<T> qkv,
                     const std::type_identity_t<QkVectors<const T>>& weights, Out<T> y);

// Writes all of dqkv (values: a copy of dy); dqkv may alias dy.
template <class T = float>
void qk_norm_input_gradient(const costmodel::Norm& op, const HeadLayout& layout, In<T> qkv,
                            const std::type_identity_t<QkVectors<const T>>& weights, In<T> dy,
                            Out<T> dqkv);

// Accumulates into the gradients of the gains and shifts.
template <class T = float>
void qk_norm_weight_gradient(const costmodel::Norm& op, const HeadLayout& layout, In<T> qkv,
                             In<T> dy, const std::type_identity_t<QkVectors<T>>& gradients);

}  // namespace runtime::cpu
