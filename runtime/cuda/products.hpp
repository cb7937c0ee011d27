// Matrix products by cuBLASLt, in fp32: with plain multiplications, or, where asked for, in TF32.
#pragma once

#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <array>
#include <cstdint>
#include <map>

#include "runtime/cpu/gemm.hpp"

namespace runtime::cuda {

class Products {
 public:
  // On the calling thread's GPU.
  explicit Products(bool tf32);
  ~Products();
  Products(const Products&) = delete;
  Products& operator=(const Products&) = delete;

  // As cpu::gemm_batched. bias[n], where not null, is added to every row; then beta is 0.
  void multiply(cudaStream_t stream, const cpu::Gemm& gemm, const cpu::Batch& batch, const float* a,
                const float* b, const float* bias, float* c);

 private:
  struct Plan;
  using Key = std::array<std::int64_t, 16>;  // all that an algorithm is chosen by
  Plan& plan_for(const Key& key, const cpu::Gemm& gemm, const cpu::Batch& batch, bool bias);
  void choose(Plan& plan, const Key& key, const cpu::Gemm& gemm);

  bool tf32_;
  cublasLtHandle_t handle_ = nullptr;
  void* workspace_ = nullptr;
  std::map<Key, Plan> plans_;
};

}  // namespace runtime::cuda
