#include "runtime/cpu/softmax.hpp"

#include <algorithm>

#include "runtime/cpu/rows.hpp"

namespace runtime::cpu {

using namespace costmodel;

template <class T>
void softmax_forward(const Softmax& op, double scale, bool causal, In<T> scores,
                     Out<T> probabilities) {
  expect_size(scores.size(), op.rows * op.cols, "scores");
  expect_size(probabilities.size(), op.rows * op.cols, "probabilities");
  const T factor = static_cast<T>(scale);
  for (std::int64_t row = 0; row < op.rows; ++row) {
    const std::int64_t visible = causal ? row % op.cols + 1 : op.cols;
    const T* x = scores.data() + row * op.cols;
    T* p = probabilities.data() + row * op.cols;
    const T sum = row_exp(visible, factor, factor * row_max(visible, x), x, p);
    row_scale(visible, 1 / sum, p);
    std::fill(p + visible, p + op.cols, T(0));
  }
}

template <class T>
void softmax_gradient(const Softmax& op, double scale, In<T> probabilities, In<T> dprobabilities,
                      Out<T> dscores) {
  expect_size(probabilities.size(), op.rows * op.cols, "probabilities");
  expect_size(dprobabilities.size(), op.rows * op.cols, "dprobabilities");
  expect_size(dscores.size(), op.rows * op.cols, "dscores");
  for (std::int64_t row = 0; row < op.rows; ++row) {
    const T* p = probabilities.data() + row * op.cols;
    const T* dp = dprobabilities.data() + row * op.cols;
    row_softmax_gradient(op.cols, static_cast<T>(scale), row_dot(op.cols, p, dp), p, dp,
                         dscores.data() + row * op.cols);
  }
}

template decltype(softmax_forward<float>) softmax_forward<float>;
template decltype(softmax_forward<double>) softmax_forward<double>;
template decltype(softmax_gradient<float>) softmax_gradient<float>;
template decltype(softmax_gradient<double>) softmax_gradient<double>;

}  // namespace runtime::cpu
