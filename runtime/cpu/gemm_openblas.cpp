#include <cblas.h>

#include "runtime/cpu/gemm_float.hpp"

namespace runtime::cpu {

const char* const float_provider = "OpenBLAS";

namespace {

CBLAS_TRANSPOSE transposition(bool transpose) { return transpose ? CblasTrans : CblasNoTrans; }

}  // namespace

void multiply_floats(const Gemm& g, const float* a, const float* b, float* c) {
  static const bool alone = (openblas_set_num_threads(1), true);  // of the process, once
  static_cast<void>(alone);
  const auto size = [](std::int64_t n) { return static_cast<blasint>(n); };
  cblas_sgemm(CblasRowMajor, transposition(g.transpose_a), transposition(g.transpose_b), size(g.m),
              size(g.n), size(g.k), static_cast<float>(g.alpha), a, size(g.lda), b, size(g.ldb),
              static_cast<float>(g.beta), c, size(g.ldc));
}

}  // namespace runtime::cpu
