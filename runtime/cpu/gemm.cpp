#include "runtime/cpu/gemm.hpp"

#include <stdexcept>

#include "runtime/cpu/gemm_float.hpp"
#include "runtime/cpu/gemm_with_eigen.hpp"

namespace runtime::cpu {

namespace {

Gemm with_strides(Gemm g) {
  if (g.lda == 0) g.lda = g.transpose_a ? g.m : g.k;
  if (g.ldb == 0) g.ldb = g.transpose_b ? g.k : g.n;
  if (g.ldc == 0) g.ldc = g.n;
  return g;
}

// The number of elements from a stored matrix's first to its last, inclusive.
std::int64_t extent(std::int64_t rows, std::int64_t cols, std::int64_t stride) {
  return (rows - 1) * stride + cols;
}

void expect_room(std::size_t elements, std::int64_t needed, const char* matrix) {
  if (static_cast<std::int64_t>(elements) >= needed) return;
  throw std::invalid_argument("matrix " + std::string(matrix) + " needs " + std::to_string(needed) +
                              " elements and has " + std::to_string(elements));
}

void multiply(const Gemm& g, const float* a, const float* b, float* c) {
  multiply_floats(g, a, b, c);
}
void multiply(const Gemm& g, const double* a, const double* b, double* c) {
  eigen_multiply(g, a, b, c);
}

}  // namespace

template <class T>
void gemm(const Gemm& g, In<T> a, In<T> b, Out<T> c) {
  gemm_batched<T>(g, {1, 0, 0, 0}, a, b, c);
}

template <class T>
void gemm_batched(const Gemm& g, const Batch& batch, In<T> a, In<T> b, Out<T> c) {
  if (g.m == 0 || g.n == 0 || batch.count == 0) return;
  const Gemm full = with_strides(g);
  const std::int64_t last = batch.count - 1;
  const std::int64_t rows_a = g.transpose_a ? g.k : g.m, rows_b = g.transpose_b ? g.n : g.k;
  const std::int64_t cols_a = g.m + g.k - rows_a, cols_b = g.k + g.n - rows_b;
  expect_room(a.size(), last * batch.stride_a + extent(rows_a, cols_a, full.lda), "a");
  expect_room(b.size(), last * batch.stride_b + extent(rows_b, cols_b, full.ldb), "b");
  expect_room(c.size(), last * batch.stride_c + extent(g.m, g.n, full.ldc), "c");
  for (std::int64_t i = 0; i < batch.count; ++i) {
    multiply(full, a.data() + i * batch.stride_a, b.data() + i * batch.stride_b,
             c.data() + i * batch.stride_c);
  }
}

std::string gemm_provider() { return float_provider; }

template decltype(gemm<float>) gemm<float>;
template decltype(gemm<double>) gemm<double>;
template decltype(gemm_batched<float>) gemm_batched<float>;
template decltype(gemm_batched<double>) gemm_batched<double>;

}  // namespace runtime::cpu
