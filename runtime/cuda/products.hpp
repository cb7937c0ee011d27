// Matrix products by cuBLASLt, summed in fp32: of fp32, with plain multiplications or, where asked
// for, in TF32; of bf16; of fp16; and of fp8.
#pragma once

#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <array>
#include <cstdint>
#include <map>

#include "runtime/backend/fp8_scale.hpp"
#include "runtime/kernels/product.hpp"

namespace runtime::cuda {

template <class T>
inline constexpr cudaDataType_t data_type = CUDA_R_32F;
template <>
inline constexpr cudaDataType_t data_type<Bf16> = CUDA_R_16BF;
template <>
inline constexpr cudaDataType_t data_type<F16> = CUDA_R_16F;
template <>
inline constexpr cudaDataType_t data_type<E4M3> = CUDA_R_8F_E4M3;
template <>
inline constexpr cudaDataType_t data_type<E5M2> = CUDA_R_8F_E5M2;

class Products {
 public:
  // On the calling thread's GPU, on so many of its multiprocessors; 0: on all.
  Products(bool tf32, int multiprocessors);
  ~Products();
  Products(const Products&) = delete;
  Products& operator=(const Products&) = delete;

  // As cpu::gemm_batched: c = a · b, ended as kernels::Ending says. Operands are of one format,
  // whose result is of that or fp32; or both of fp8, with scales on the device, and a result in
  // bf16 or fp32. `sums` are of c's format.
  struct Operands {
    const void* a;
    const void* b;
    void* c;
    cudaDataType_t a_type, b_type, c_type;
    kernels::Epilogue epilogue = kernels::Epilogue::none;
    const void* bias = nullptr;
    void* before = nullptr;
    void* sums = nullptr;
    const float* a_scale = nullptr;
    const float* b_scale = nullptr;
  };
  // False where cuBLASLt has no algorithm with such an ending: nothing has been done then. Throws
  // std::runtime_error where it has none without one.
  bool multiply(cudaStream_t stream, const cpu::Gemm& gemm, const cpu::Batch& batch,
                const Operands& operands);

 private:
  struct Plan;
  using Key = std::array<std::int64_t, 19>;  // all that an algorithm is chosen by
  Plan& plan_for(const Key& key, const cpu::Gemm& gemm, const cpu::Batch& batch,
                 const Operands& operands);
  void describe(Plan& plan, const cpu::Gemm& gemm, const cpu::Batch& batch,
                const Operands& operands);
  void choose(Plan& plan, const Key& key);

  bool tf32_;
  std::int32_t multiprocessors_;
  cublasLtHandle_t handle_ = nullptr;
  void* workspace_ = nullptr;
  std::map<Key, Plan> plans_;
};

}  // namespace runtime::cuda
