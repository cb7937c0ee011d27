// Row-major matrix products on the calling thread alone, because ranks are threads of one process
// with a core each. float products use oneDNN, OpenBLAS or Eigen, chosen at build time by
// SHARDPLAN_BLAS. They select instructions at run time, so the last bits may differ between
// processors; on one machine the same input gives identical bytes. double products use Eigen.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/cpu/view.hpp"

namespace runtime::cpu {

// c[m, n] = alpha · op(a)[m, k] · op(b)[k, n] + beta · c. A transposed `a` is stored [k, m], a
// transposed `b` [n, k]. lda, ldb, ldc: row strides in elements; 0: contiguous rows. With beta = 0,
// c is not read.
struct Gemm {
  std::int64_t m, n, k;
  bool transpose_a = false, transpose_b = false;
  double alpha = 1, beta = 0;
  std::int64_t lda = 0, ldb = 0, ldc = 0;
};

// Throws std::invalid_argument when a span is shorter than its matrix.
template <class T = float>
void gemm(const Gemm& g, In<T> a, In<T> b, Out<T> c);

// `count` products of one shape. Strides are elements from one matrix to the next, 0 for a matrix
// that all products share.
struct Batch {
  std::int64_t count, stride_a, stride_b, stride_c;
};
template <class T = float>
void gemm_batched(const Gemm& g, const Batch& batch, In<T> a, In<T> b, Out<T> c);

// The library of this build's float products: "oneDNN", "OpenBLAS" or "Eigen".
std::string gemm_provider();

}  // namespace runtime::cpu
