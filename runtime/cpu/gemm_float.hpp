// What gemm.cpp asks of the provider of float products; one of gemm_eigen.cpp, gemm_openblas.cpp
// and gemm_onednn.cpp is in a build.
#pragma once

#include "runtime/cpu/gemm.hpp"

namespace runtime::cpu {

extern const char* const float_provider;

// lda, ldb and ldc are given. Runs on the calling thread alone. Throws std::runtime_error where the
// provider fails.
void multiply_floats(const Gemm& g, const float* a, const float* b, float* c);

}  // namespace runtime::cpu
