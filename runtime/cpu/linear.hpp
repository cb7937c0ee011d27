// y[m, n] = x[m, k] · w[k, n] + bias[n] and its gradients. All throw std::invalid_argument on a
// tensor of the wrong size.
#pragma once

#include "costmodel/operators/op.hpp"
#include "runtime/cpu/view.hpp"

namespace runtime::cpu {

// `bias` may be empty; then none is added, regardless of op.bias (the bias of a row-parallel
// product is added once, after the all-reduce).
template <class T = float>
void linear_forward(const costmodel::Linear& op, In<T> x, In<T> w, In<T> bias, Out<T> y);

// dx = dy · wᵀ; overwrites.
template <class T = float>
void linear_input_gradient(const costmodel::Linear& op, In<T> dy, In<T> w, Out<T> dx);

// dw += xᵀ · dy.
template <class T = float>
void linear_weight_gradient(const costmodel::Linear& op, In<T> x, In<T> dy, Out<T> dw);

// dbias[cols] += column sums of dy[rows, cols].
template <class T = float>
void bias_gradient(std::int64_t rows, std::int64_t cols, In<T> dy, Out<T> dbias);

}  // namespace runtime::cpu
