// A GPU thread block (CTA) and its tensor cores, with the interface that runtime/kernels/flash.hpp
// requires.
#pragma once

#include <algorithm>
#include <stdexcept>

#include "runtime/cuda/check.hpp"
#include "runtime/kernels/flash.hpp"

namespace runtime::cuda {

class GpuCta {
 public:
  __device__ int thread() const { return static_cast<int>(threadIdx.x); }
  __device__ void sync() const { __syncthreads(); }

  template <class T>
  __device__ void mma(kernels::Sums& d, const kernels::Fragment& a, std::uint32_t b0,
                      std::uint32_t b1) const {
    if constexpr (number_of<T> == Number::bf16) {
      asm volatile(
          "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
          "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
          : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
          : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
    } else {
      static_assert(number_of<T> == Number::f16);
      asm volatile(
          "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
          "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
          : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
          : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
    }
  }
  __device__ void load(kernels::Fragment& to, const void* row) const {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(shared_address(row))
                 : "memory");
  }
  __device__ void load_transposed(kernels::Fragment& to, const void* row) const {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];\n"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(shared_address(row))
                 : "memory");
  }
  __device__ float exchange(float value, int apart) const {
    return __shfl_xor_sync(0xffffffffU, value, apart);
  }
  template <class T>
  __device__ std::uint32_t pack(float low, float high) const {
    std::uint32_t packed;
    if constexpr (number_of<T> == Number::bf16)
      asm("cvt.rn.bf16x2.f32 %0, %1, %2;\n" : "=r"(packed) : "f"(high), "f"(low));
    else
      asm("cvt.rn.f16x2.f32 %0, %1, %2;\n" : "=r"(packed) : "f"(high), "f"(low));
    return packed;
  }

 private:
  __device__ static std::uint32_t shared_address(const void* row) {
    return static_cast<std::uint32_t>(__cvta_generic_to_shared(row));
  }
};

// Two blocks a multiprocessor leave 255 registers to a thread, which the gradients need.
template <class Kernel>
__global__ void __launch_bounds__(kernels::flash_threads, 2) run_tiles(Kernel kernel) {
  extern __shared__ __align__(16) unsigned char room[];
  kernel(GpuCta{}, static_cast<kernels::Index>(blockIdx.x), static_cast<kernels::Index>(blockIdx.y),
         reinterpret_cast<typename Kernel::Element*>(room));
}

// Once for each GPU that the thread uses: more than 48 KiB have to be asked for.
template <class Kernel>
void allow_shared_memory(int bytes) {
  thread_local int allowed = -1;  // the last GPU
  int device = 0;
  check(cudaGetDevice(&device));
  if (device == allowed) return;
  check(
      cudaFuncSetAttribute(run_tiles<Kernel>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
  allowed = device;
}

template <class Kernel>
void launch_tiles(cudaStream_t stream, kernels::Index x, kernels::Index y, const Kernel& kernel) {
  if (x == 0 || y == 0) return;
  constexpr kernels::Index most_y = 65535;  // CUDA C++ Programming Guide, compute capabilities
  if (y > most_y) throw std::invalid_argument("more heads of sequences than a grid is high");
  constexpr int bytes = Kernel::room * static_cast<int>(sizeof(typename Kernel::Element));
  allow_shared_memory<Kernel>(bytes);
  run_tiles<<<dim3(static_cast<unsigned>(x), static_cast<unsigned>(y)), kernels::flash_threads,
              bytes, stream>>>(kernel);
  check(cudaGetLastError());
}

}  // namespace runtime::cuda
