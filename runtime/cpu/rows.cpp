#include "runtime/cpu/rows.hpp"

#include <limits>

#include "runtime/cpu/clones.hpp"
#include "runtime/cpu/lanes.hpp"
#include "runtime/cpu/math.hpp"

namespace runtime::cpu {

template <class T>
RUNTIME_CLONES T row_max(std::int64_t n, const T* x) {
  return lane_reduce(
      n, -std::numeric_limits<T>::infinity(), [=](std::int64_t i) { return x[i]; },
      [](T a, T b) { return a > b ? a : b; });
}

template <class T>
RUNTIME_CLONES T row_dot(std::int64_t n, const T* a, const T* b) {
  return lane_sum<T>(n, [=](std::int64_t i) { return a[i] * b[i]; });
}

template <class T>
RUNTIME_CLONES T row_exp(std::int64_t n, T factor, T shift, const T* x, T* y) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = exponential(factor * x[i] - shift);
  return lane_sum<T>(n, [=](std::int64_t i) { return y[i]; });
}

template <class T>
RUNTIME_CLONES void row_scale(std::int64_t n, T factor, T* y) {
  for (std::int64_t i = 0; i < n; ++i) y[i] *= factor;
}

template <class T>
RUNTIME_CLONES void row_add(std::int64_t n, const T* x, T* y) {
  for (std::int64_t i = 0; i < n; ++i) y[i] += x[i];
}

template <class T>
RUNTIME_CLONES void row_softmax_gradient(std::int64_t n, T factor, T mean, const T* p, const T* dp,
                                         T* ds) {
  for (std::int64_t i = 0; i < n; ++i) ds[i] = factor * p[i] * (dp[i] - mean);
}

template decltype(row_max<float>) row_max<float>;
template decltype(row_max<double>) row_max<double>;
template decltype(row_dot<float>) row_dot<float>;
template decltype(row_dot<double>) row_dot<double>;
template decltype(row_exp<float>) row_exp<float>;
template decltype(row_exp<double>) row_exp<double>;
template decltype(row_scale<float>) row_scale<float>;
template decltype(row_scale<double>) row_scale<double>;
template decltype(row_add<float>) row_add<float>;
template decltype(row_add<double>) row_add<double>;
template decltype(row_softmax_gradient<float>) row_softmax_gradient<float>;
template decltype(row_softmax_gradient<double>) row_softmax_gradient<double>;

}  // namespace runtime::cpu
