// Loops over one row of n elements, shared by several kernels. T is float or double.
#pragma once

#include <cstdint>

namespace runtime::cpu {

// The largest element, ignoring NaN; minus infinity for n = 0.
template <class T>
T row_max(std::int64_t n, const T* x);

template <class T>
T row_dot(std::int64_t n, const T* a, const T* b);

// y = exp(factor · x - shift), may alias x; returns the sum of y.
template <class T>
T row_exp(std::int64_t n, T factor, T shift, const T* x, T* y);

// y = factor · y.
template <class T>
void row_scale(std::int64_t n, T factor, T* y);

// y += x.
template <class T>
void row_add(std::int64_t n, const T* x, T* y);

// ds = factor · p · (dp - mean), the gradient of a softmax; ds may alias p or dp.
template <class T>
void row_softmax_gradient(std::int64_t n, T factor, T mean, const T* p, const T* dp, T* ds);

}  // namespace runtime::cpu
