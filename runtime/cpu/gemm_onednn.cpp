#include <dnnl.h>

#include <stdexcept>
#include <string>

#include "runtime/cpu/gemm_float.hpp"

// Of the OpenMP library that oneDNN uses; its <omp.h> would have to be this compiler's.
extern "C" void omp_set_num_threads(int threads);

namespace runtime::cpu {

const char* const float_provider = "oneDNN";

namespace {

// OpenMP keeps the figure for each thread that calls: every rank says it once.
void stay_on_this_thread() {
#ifdef RUNTIME_CPU_OPENMP
  thread_local const bool alone = (omp_set_num_threads(1), true);
  static_cast<void>(alone);
#endif
}

}  // namespace

void multiply_floats(const Gemm& g, const float* a, const float* b, float* c) {
  stay_on_this_thread();
  const auto letter = [](bool transpose) { return transpose ? 'T' : 'N'; };
  const dnnl_status_t status = dnnl_sgemm(letter(g.transpose_a), letter(g.transpose_b), g.m, g.n,
                                          g.k, static_cast<float>(g.alpha), a, g.lda, b, g.ldb,
                                          static_cast<float>(g.beta), c, g.ldc);
  if (status != dnnl_success)
    throw std::runtime_error("dnnl_sgemm failed with status " + std::to_string(status));
}

}  // namespace runtime::cpu
