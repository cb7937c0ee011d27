// Matrix products by cuBLASLt, summed in fp32: of fp32, with plain multiplications or, where asked
// for, in TF32; of bf16; and of fp16.
#pragma once

#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <array>
#include <cstdint>
#include <map>

#include "runtime/cpu/gemm.hpp"
#include "runtime/number.hpp"

namespace runtime::cuda {

class Products {
 public:
  // On the calling thread's GPU, on so many of its multiprocessors; 0: on all.
  Products(bool tf32, int multiprocessors);
  ~Products();
  Products(const Products&) = delete;
  Products& operator=(const Products&) = delete;

  // As cpu::gemm_batched: c = a · b, whose operands are of one format and whose result is of that
  // or fp32. bias[n], where not null, is added to every row; then beta is 0 and c of the bias's
  // format.
  struct Operands {
    const void* a;
    const void* b;
    const void* bias;
    void* c;
    Number operand, result;
  };
  void multiply(cudaStream_t stream, const cpu::Gemm& gemm, const cpu::Batch& batch,
                const Operands& operands);

 private:
  struct Plan;
  using Key = std::array<std::int64_t, 18>;  // all that an algorithm is chosen by
  Plan& plan_for(const Key& key, const cpu::Gemm& gemm, const cpu::Batch& batch,
                 const Operands& operands);
  void choose(Plan& plan, const Key& key, const cpu::Gemm& gemm);

  bool tf32_;
  std::int32_t multiprocessors_;
  cublasLtHandle_t handle_ = nullptr;
  void* workspace_ = nullptr;
  std::map<Key, Plan> plans_;
};

}  // namespace runtime::cuda
