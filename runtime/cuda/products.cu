#include "runtime/cuda/products.hpp"

#include <stdexcept>
#include <string>

#include "runtime/cuda/check.hpp"
#include "runtime/cuda/launch_shape.hpp"
#include "runtime/kernels/product.hpp"

namespace runtime::cuda {

namespace {

constexpr std::size_t workspace_bytes = std::size_t{32} << 20U;  // what NVIDIA advises for Hopper

template <class T>
void set(cublasLtMatmulDesc_t descriptor, cublasLtMatmulDescAttributes_t attribute,
         const T& value) {
  check(cublasLtMatmulDescSetAttribute(descriptor, attribute, &value, sizeof(value)));
}

cudaDataType_t type_of(Number number) {
  switch (number) {
    case Number::bf16: return CUDA_R_16BF;
    case Number::f16: return CUDA_R_16F;
    case Number::f32: break;
  }
  return CUDA_R_32F;
}

cublasLtMatrixLayout_t layout(Number number, std::int64_t rows, std::int64_t cols,
                              std::int64_t stride, std::int64_t count, std::int64_t step) {
  cublasLtMatrixLayout_t made = nullptr;
  check(cublasLtMatrixLayoutCreate(&made, type_of(number), static_cast<std::uint64_t>(rows),
                                   static_cast<std::uint64_t>(cols), stride));
  const auto matrices = static_cast<std::int32_t>(count);
  check(cublasLtMatrixLayoutSetAttribute(made, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &matrices,
                                         sizeof(matrices)));
  check(cublasLtMatrixLayoutSetAttribute(made, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &step,
                                         sizeof(step)));
  return made;
}

// Of a batch's every matrix.
std::int64_t alignment(Number number, const void* first, std::int64_t step) {
  return alignment_of(reinterpret_cast<std::uintptr_t>(first) |
                      static_cast<std::uint64_t>(step) * bytes_of(number));
}

}  // namespace

struct Products::Plan {
  cublasLtMatmulDesc_t product = nullptr;
  cublasLtMatrixLayout_t first = nullptr, second = nullptr, result = nullptr;
  cublasLtMatmulAlgo_t algorithm{};
  Plan() = default;
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;
  ~Plan() {
    for (const cublasLtMatrixLayout_t one : {first, second, result})
      if (one != nullptr) cublasLtMatrixLayoutDestroy(one);
    if (product != nullptr) cublasLtMatmulDescDestroy(product);
  }
};

Products::Products(bool tf32, int multiprocessors)
    : tf32_(tf32), multiprocessors_(multiprocessors) {
  check(cublasLtCreate(&handle_));
  check(cudaMalloc(&workspace_, workspace_bytes));
}

Products::~Products() {
  plans_.clear();
  cudaFree(workspace_);
  cublasLtDestroy(handle_);
}

void Products::choose(Plan& plan, const Key& key, const cpu::Gemm& gemm) {
  cublasLtMatmulPreference_t wish = nullptr;
  check(cublasLtMatmulPreferenceCreate(&wish));
  const auto want = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
    check(cublasLtMatmulPreferenceSetAttribute(wish, attribute, &value, sizeof(value)));
  };
  want(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace_bytes);
  // Row-major's b is the first matrix, a the second (kernels/product.hpp).
  want(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, static_cast<std::uint32_t>(key[13]));
  want(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, static_cast<std::uint32_t>(key[14]));
  want(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, static_cast<std::uint32_t>(key[15]));
  want(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, static_cast<std::uint32_t>(key[15]));
  cublasLtMatmulHeuristicResult_t best{};
  int found = 0;
  const cublasStatus_t status =
      cublasLtMatmulAlgoGetHeuristic(handle_, plan.product, plan.first, plan.second, plan.result,
                                     plan.result, wish, 1, &best, &found);
  cublasLtMatmulPreferenceDestroy(wish);
  check(status);
  if (found == 0) {
    throw std::runtime_error("cuBLASLt has no algorithm for a product of " +
                             std::to_string(gemm.m) + " x " + std::to_string(gemm.n) + " x " +
                             std::to_string(gemm.k));
  }
  plan.algorithm = best.algo;
}

Products::Plan& Products::plan_for(const Key& key, const cpu::Gemm& gemm, const cpu::Batch& batch,
                                   const Operands& o) {
  const auto found = plans_.find(key);
  if (found != plans_.end()) return found->second;
  Plan& plan = plans_[key];
  const auto p = kernels::column_major(gemm);
  try {
    check(cublasLtMatmulDescCreate(
        &plan.product,
        tf32_ && o.operand == Number::f32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F,
        CUDA_R_32F));
    set(plan.product, CUBLASLT_MATMUL_DESC_TRANSA, p.transpose_first ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(plan.product, CUBLASLT_MATMUL_DESC_TRANSB, p.transpose_second ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(plan.product, CUBLASLT_MATMUL_DESC_EPILOGUE,
        o.bias != nullptr ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT);
    set(plan.product, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, type_of(o.result));
    if (multiprocessors_ > 0)
      set(plan.product, CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET, multiprocessors_);
    plan.first = layout(o.operand, p.first_rows(), p.first_cols(), p.first_stride, batch.count,
                        batch.stride_b);
    plan.second = layout(o.operand, p.second_rows(), p.second_cols(), p.second_stride, batch.count,
                         batch.stride_a);
    plan.result = layout(o.result, p.rows, p.cols, p.result_stride, batch.count, batch.stride_c);
    choose(plan, key, gemm);
  } catch (...) {
    plans_.erase(key);
    throw;
  }
  return plan;
}

void Products::multiply(cudaStream_t stream, const cpu::Gemm& gemm, const cpu::Batch& batch,
                        const Operands& o) {
  if (gemm.m == 0 || gemm.n == 0 || batch.count == 0) return;
  if (o.bias != nullptr && (gemm.beta != 0 || o.operand != o.result))
    throw std::invalid_argument("a product with a bias adds to nothing else, and keeps its format");
  const Key key{gemm.m,
                gemm.n,
                gemm.k,
                std::int64_t{gemm.transpose_a} * 2 + gemm.transpose_b,
                gemm.lda,
                gemm.ldb,
                gemm.ldc,
                o.bias != nullptr,
                gemm.beta != 0,
                batch.count,
                batch.stride_a,
                batch.stride_b,
                batch.stride_c,
                alignment(o.operand, o.a, batch.stride_a),
                alignment(o.operand, o.b, batch.stride_b),
                alignment(o.result, o.c, batch.stride_c),
                static_cast<std::int64_t>(o.operand),
                static_cast<std::int64_t>(o.result)};
  Plan& plan = plan_for(key, gemm, batch, o);
  if (o.bias != nullptr) set(plan.product, CUBLASLT_MATMUL_DESC_BIAS_POINTER, o.bias);
  const auto alpha = static_cast<float>(gemm.alpha), beta = static_cast<float>(gemm.beta);
  check(cublasLtMatmul(handle_, plan.product, &alpha, o.b, plan.first, o.a, plan.second, &beta, o.c,
                       plan.result, o.c, plan.result, &plan.algorithm, workspace_, workspace_bytes,
                       stream));
}

}  // namespace runtime::cuda
