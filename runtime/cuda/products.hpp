// Matrix products by cuBLASLt, accumulated in fp32. Operands: fp32, multiplied in fp32 or on
// request in TF32; bf16; fp16; fp8.
#pragma once

#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

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
  // On the calling thread's current GPU, tuned for so many of its multiprocessors; 0: all.
  Products(bool tf32, int multiprocessors);
  ~Products();
  Products(const Products&) = delete;
  Products& operator=(const Products&) = delete;

  // Like cpu::gemm_batched: c = a · b, with an epilogue (kernels::Ending). Operands have one format
  // and the result that format or fp32; or both are fp8, with scales in device memory, and the
  // result is bf16 or fp32. `sums` has c's format.
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
  // False when cuBLASLt has no algorithm for that; nothing has been computed then.
  bool multiply(cudaStream_t stream, const cpu::Gemm& gemm, const cpu::Batch& batch,
                const Operands& operands);
  // On the products, those in fp8 and the epilogues that cuBLASLt had no algorithm for.
  std::vector<std::string> notes() const;

 private:
  struct Plan;
  using Key = std::array<std::int64_t, 21>;  // all that the choice of an algorithm depends on
  Plan& plan_for(const Key& key, const cpu::Gemm& gemm, const cpu::Batch& batch,
                 const Operands& operands);
  void describe(Plan& plan, const cpu::Gemm& gemm, const cpu::Batch& batch,
                const Operands& operands);
  void choose(Plan& plan, const Key& key);
  void give_up(Plan& plan, const cpu::Gemm& gemm, const Operands& operands);

  bool tf32_;
  std::int32_t multiprocessors_;
  cublasLtHandle_t handle_ = nullptr;
  void* workspace_ = nullptr;
  std::map<Key, Plan> plans_;
  std::vector<std::string> missing_, widened_, unfused_;  // shapes
};

}  // namespace runtime::cuda
