// Kernel bodies are plain functions of one element, one row or one column, compiled for the GPU by
// nvcc and for the host by any compiler, so that tests hold the very arithmetic that a GPU does
// against the CPU's operators. Numbers are loaded as T and computed in float.
#pragma once

#include <cmath>
#include <cstdint>

#if defined(__CUDACC__)
#define RUNTIME_PORTABLE __host__ __device__ inline
#else
#define RUNTIME_PORTABLE inline
#endif

// Before a loop whose variable chooses registers.
#if defined(__CUDA_ARCH__)
#define RUNTIME_UNROLL _Pragma("unroll")
#else
#define RUNTIME_UNROLL
#endif

namespace runtime::kernels {

using Index = std::int64_t;

RUNTIME_PORTABLE float exponential(float x) {
#if defined(__CUDA_ARCH__)
  return expf(x);
#else
  return std::exp(x);
#endif
}

RUNTIME_PORTABLE float logarithm(float x) {
#if defined(__CUDA_ARCH__)
  return logf(x);
#else
  return std::log(x);
#endif
}

RUNTIME_PORTABLE float square_root(float x) {
#if defined(__CUDA_ARCH__)
  return sqrtf(x);
#else
  return std::sqrt(x);
#endif
}

RUNTIME_PORTABLE float larger(float a, float b) { return a > b ? a : b; }

RUNTIME_PORTABLE float sigmoid(float x) { return 1.0F / (1.0F + exponential(-x)); }

inline constexpr float lowest_float = -3.402823466e+38F;

// A team is the threads that share a row: member `rank` of `size`. sum() and max() give every
// member the result over all, and let none of them go on before all have come; what one wrote
// before, all read after. The team of one is the host's.
struct Alone {
  RUNTIME_PORTABLE int rank() const { return 0; }
  RUNTIME_PORTABLE int size() const { return 1; }
  RUNTIME_PORTABLE float sum(float value) const { return value; }
  RUNTIME_PORTABLE double sum(double value) const { return value; }
  RUNTIME_PORTABLE float max(float value) const { return value; }
};

// What a column adds up.
struct Pair {
  float first = 0, second = 0;
};

RUNTIME_PORTABLE Pair operator+(const Pair& a, const Pair& b) {
  return {a.first + b.first, a.second + b.second};
}

}  // namespace runtime::kernels
