#include "runtime/cpu/norm_rows.hpp"

#include <cmath>

#include "runtime/cpu/clones.hpp"
#include "runtime/cpu/lanes.hpp"
#include "runtime/cpu/norm.hpp"
#include "runtime/cpu/rows.hpp"

namespace runtime::cpu {

using namespace costmodel;

template <class T>
RUNTIME_CLONES RowStatistics<T> norm_row_statistics(Normalization kind, std::int64_t n,
                                                    const T* x) {
  const T count = static_cast<T>(n);
  T mean = 0;
  if (kind == Normalization::layernorm)
    mean = lane_sum<T>(n, [=](std::int64_t i) { return x[i]; }) / count;
  const T squares =
      lane_sum<T>(n, [=](std::int64_t i) { return (x[i] - mean) * (x[i] - mean); }) / count;
  return {mean, 1 / std::sqrt(squares + static_cast<T>(norm_epsilon))};
}

template <class T>
RUNTIME_CLONES void norm_row_forward(std::int64_t n, const RowStatistics<T>& statistics, const T* x,
                                     const T* gain, const T* shift, T* y) {
  const auto [mean, inverse] = statistics;
  for (std::int64_t i = 0; i < n; ++i) y[i] = (x[i] - mean) * inverse * gain[i];
  if (shift != nullptr) row_add(n, shift, y);
}

// With x^ = (x - mean) · inverse and g = dy · gain: dx = inverse · (g - mean(g) - x^ · mean(g ·
// x^)), where RMSNorm has no mean(g).
template <class T>
RUNTIME_CLONES void norm_row_input_gradient(Normalization kind, std::int64_t n,
                                            const RowStatistics<T>& statistics, const T* x,
                                            const T* gain, const T* dy, T* dx, bool accumulate) {
  const auto [mean, inverse] = statistics;
  const T count = static_cast<T>(n), m = mean, r = inverse;
  const T along =
      lane_sum<T>(n, [=](std::int64_t i) { return dy[i] * gain[i] * ((x[i] - m) * r); }) / count;
  T level = 0;
  if (kind == Normalization::layernorm) level = row_dot(n, dy, gain) / count;
  if (accumulate) {
    for (std::int64_t i = 0; i < n; ++i)
      dx[i] += r * (dy[i] * gain[i] - level - (x[i] - m) * r * along);
    return;
  }
  for (std::int64_t i = 0; i < n; ++i)
    dx[i] = r * (dy[i] * gain[i] - level - (x[i] - m) * r * along);
}

template <class T>
RUNTIME_CLONES void norm_row_weight_gradient(std::int64_t n, const RowStatistics<T>& statistics,
                                             const T* x, const T* dy, T* dgain, T* dshift) {
  const auto [mean, inverse] = statistics;
  for (std::int64_t i = 0; i < n; ++i) dgain[i] += dy[i] * ((x[i] - mean) * inverse);
  if (dshift != nullptr) row_add(n, dy, dshift);
}

template decltype(norm_row_statistics<float>) norm_row_statistics<float>;
template decltype(norm_row_statistics<double>) norm_row_statistics<double>;
template decltype(norm_row_forward<float>) norm_row_forward<float>;
template decltype(norm_row_forward<double>) norm_row_forward<double>;
template decltype(norm_row_input_gradient<float>) norm_row_input_gradient<float>;
template decltype(norm_row_input_gradient<double>) norm_row_input_gradient<double>;
template decltype(norm_row_weight_gradient<float>) norm_row_weight_gradient<float>;
template decltype(norm_row_weight_gradient<double>) norm_row_weight_gradient<double>;

}  // namespace runtime::cpu
