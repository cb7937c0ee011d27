// The interface of gemm.cpp to the provider of float products. A build contains one of
// gemm_eigen.cpp, gemm_openblas.cpp and gemm_onednn.cpp.
#pragma once

#include "runtime/cpu/gemm.hpp"

namespace runtime::cpu {

extern const char* const float_provider;

// lda, ldb and ldc must be set. Runs on the calling thread alone. Throws std::runtime_error when
// the provider fails.
void multiply_floats(const Gemm& g, const float* a, const float* b, float* c);

}  // namespace runtime::cpu
