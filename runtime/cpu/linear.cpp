#include "runtime/cpu/linear.hpp"

#include <algorithm>

#include "runtime/cpu/gemm.hpp"
#include "runtime/cpu/rows.hpp"

namespace runtime::cpu {

template <class T>
void linear_forward(const costmodel::Linear& op, In<T> x, In<T> w, In<T> bias, Out<T> y) {
  expect_size(x.size(), op.m * op.k, "x");
  expect_size(w.size(), op.k * op.n, "w");
  expect_size(y.size(), op.m * op.n, "y");
  Gemm product{.m = op.m, .n = op.n, .k = op.k};
  if (!bias.empty()) {
    expect_size(bias.size(), op.n, "bias");
    for (std::int64_t row = 0; row < op.m; ++row) std::ranges::copy(bias, y.begin() + row * op.n);
    product.beta = 1;
  }
  gemm<T>(product, x, w, y);
}

template <class T>
void linear_input_gradient(const costmodel::Linear& op, In<T> dy, In<T> w, Out<T> dx) {
  expect_size(dy.size(), op.m * op.n, "dy");
  expect_size(w.size(), op.k * op.n, "w");
  expect_size(dx.size(), op.m * op.k, "dx");
  gemm<T>({.m = op.m, .n = op.k, .k = op.n, .transpose_b = true}, dy, w, dx);
}

template <class T>
void linear_weight_gradient(const costmodel::Linear& op, In<T> x, In<T> dy, Out<T> dw) {
  expect_size(x.size(), op.m * op.k, "x");
  expect_size(dy.size(), op.m * op.n, "dy");
  expect_size(dw.size(), op.k * op.n, "dw");
  gemm<T>({.m = op.k, .n = op.n, .k = op.m, .transpose_a = true, .beta = 1}, x, dy, dw);
}

template <class T>
void bias_gradient(std::int64_t rows, std::int64_t cols, In<T> dy, Out<T> dbias) {
  expect_size(dy.size(), rows * cols, "dy");
  expect_size(dbias.size(), cols, "dbias");
  for (std::int64_t row = 0; row < rows; ++row) row_add(cols, dy.data() + row * cols, dbias.data());
}

template decltype(linear_forward<float>) linear_forward<float>;
template decltype(linear_forward<double>) linear_forward<double>;
template decltype(linear_input_gradient<float>) linear_input_gradient<float>;
template decltype(linear_input_gradient<double>) linear_input_gradient<double>;
template decltype(linear_weight_gradient<float>) linear_weight_gradient<float>;
template decltype(linear_weight_gradient<double>) linear_weight_gradient<double>;
template decltype(bias_gradient<float>) bias_gradient<float>;
template decltype(bias_gradient<double>) bias_gradient<double>;

}  // namespace runtime::cpu
