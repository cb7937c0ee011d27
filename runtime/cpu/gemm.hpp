// Matrix products, row-major, on the calling thread alone: ranks are threads of one process, and
// each has one core. Float goes to oneDNN, OpenBLAS or Eigen, as SHARDPLAN_BLAS chose at build time
// (they pick their instructions at run time, so sums may differ in the last bits between
// processors; on one machine the same input gives the same bytes). Double goes to Eigen.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/cpu/view.hpp"

namespace runtime::cpu {

// c[m, n] = alpha · op(a)[m, k] · op(b)[k, n] + beta · c. A transposed `a` is stored [k, m], a
// transposed `b` [n, k]. lda, ldb, ldc: elements from one stored row to the next; 0: rows are
// dense. beta = 0 does not read c.
struct Gemm {
  std::int64_t m, n, k;
  bool transpose_a = false, transpose_b = false;
  double alpha = 1, beta = 0;
  std::int64_t lda = 0, ldb = 0, ldc = 0;
};

// Throws std::invalid_argument when a span is shorter than the matrix it holds.
template <class T = float>
void gemm(const Gemm& g, In<T> a, In<T> b, Out<T> c);

// `count` products of the same shape; the strides are elements from one matrix to the next, 0 for a
// matrix that all products share.
struct Batch {
  std::int64_t count, stride_a, stride_b, stride_c;
};
template <class T = float>
void gemm_batched(const Gemm& g, const Batch& batch, In<T> a, In<T> b, Out<T> c);

// "oneDNN", "OpenBLAS" or "Eigen": what multiplies floats in this build.
std::string gemm_provider();

}  // namespace runtime::cpu
