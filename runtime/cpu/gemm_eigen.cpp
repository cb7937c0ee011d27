#include "runtime/cpu/gemm_float.hpp"
#include "runtime/cpu/gemm_with_eigen.hpp"

namespace runtime::cpu {

const char* const float_provider = "Eigen";

void multiply_floats(const Gemm& g, const float* a, const float* b, float* c) {
  eigen_multiply(g, a, b, c);
}

}  // namespace runtime::cpu
