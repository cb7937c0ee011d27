// Products by Eigen. Transposition is part of Eigen's types, so the four cases are four instances.
#pragma once

#include <Eigen/Core>

#include "runtime/cpu/gemm.hpp"

namespace runtime::cpu {

template <class T, int order>
auto eigen_matrix(T* data, std::int64_t rows, std::int64_t cols, std::int64_t stride) {
  using Plain = Eigen::Matrix<std::remove_const_t<T>, Eigen::Dynamic, Eigen::Dynamic, order>;
  using Matrix = std::conditional_t<std::is_const_v<T>, const Plain, Plain>;
  return Eigen::Map<Matrix, 0, Eigen::OuterStride<>>(data, rows, cols,
                                                     Eigen::OuterStride<>(stride));
}

template <class T, int order_a, int order_b>
void eigen_multiply(const Gemm& g, const T* a, const T* b, T* c) {
  const auto left = eigen_matrix<const T, order_a>(a, g.m, g.k, g.lda);
  const auto right = eigen_matrix<const T, order_b>(b, g.k, g.n, g.ldb);
  auto out = eigen_matrix<T, Eigen::RowMajor>(c, g.m, g.n, g.ldc);
  if (g.beta == 0) out.setZero();
  if (g.beta != 0 && g.beta != 1) out *= static_cast<T>(g.beta);
  out.noalias() += static_cast<T>(g.alpha) * (left * right);
}

// lda, ldb and ldc must be set.
template <class T>
void eigen_multiply(const Gemm& g, const T* a, const T* b, T* c) {
  constexpr int rows = Eigen::RowMajor, columns = Eigen::ColMajor;
  if (g.transpose_a && g.transpose_b) return eigen_multiply<T, columns, columns>(g, a, b, c);
  if (g.transpose_a) return eigen_multiply<T, columns, rows>(g, a, b, c);
  if (g.transpose_b) return eigen_multiply<T, rows, columns>(g, a, b, c);
  eigen_multiply<T, rows, rows>(g, a, b, c);
}

}  // namespace runtime::cpu
