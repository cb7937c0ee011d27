// Basics of kernel bodies: plain functions of one element, row, column or tile that nvcc compiles
// for GPUs and any compiler for the host, so that tests compare the GPU's arithmetic with the CPU's
// operators. Numbers are loaded as T and computed in float.
#pragma once

#include <cmath>
#include <cstdint>

// Kernels keep arrays in registers and pass them by reference: a call that the compiler does not
// inline would move them to local memory.
#if defined(__CUDACC__)
#define RUNTIME_PORTABLE __host__ __device__ __forceinline__
#else
#define RUNTIME_PORTABLE inline
#endif

// Put before loops that must unroll because their index selects registers, and before those that
// must not because their body takes nearly all of them.
#if defined(__CUDA_ARCH__)
#define RUNTIME_UNROLL _Pragma("unroll")
#define RUNTIME_NO_UNROLL _Pragma("unroll 1")
#else
#define RUNTIME_UNROLL
#define RUNTIME_NO_UNROLL
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

// A team is the threads that share a row: member `rank` of `size`. sum() and max() reduce over all
// members and return the result to each; they are barriers, which make earlier writes visible.
// Alone is the host's team of one.
struct Alone {
  RUNTIME_PORTABLE int rank() const { return 0; }
  RUNTIME_PORTABLE int size() const { return 1; }
  RUNTIME_PORTABLE float sum(float value) const { return value; }
  RUNTIME_PORTABLE double sum(double value) const { return value; }
  RUNTIME_PORTABLE float max(float value) const { return value; }
};

// The two sums of a column.
struct Pair {
  float first = 0, second = 0;
};

RUNTIME_PORTABLE Pair operator+(const Pair& a, const Pair& b) {
  return {a.first + b.first, a.second + b.second};
}

}  // namespace runtime::kernels
