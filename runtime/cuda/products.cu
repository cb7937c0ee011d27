#include "runtime/cuda/products.hpp"

#include <stdexcept>
#include <string>

#include "runtime/cuda/check.hpp"
#include "runtime/cuda/epilogue.hpp"
#include "runtime/cuda/launch_shape.hpp"

namespace runtime::cuda {

namespace {

using kernels::Epilogue;

constexpr std::size_t workspace_bytes = std::size_t{32} << 20U;  // NVIDIA's advice for Hopper

static_assert(epilogue_of(Epilogue::none, false) == CUBLASLT_EPILOGUE_DEFAULT);
static_assert(epilogue_of(Epilogue::bias, true) == CUBLASLT_EPILOGUE_BIAS);
static_assert(epilogue_of(Epilogue::gelu, false) == CUBLASLT_EPILOGUE_GELU_AUX);
static_assert(epilogue_of(Epilogue::gelu, true) == CUBLASLT_EPILOGUE_GELU_AUX_BIAS);
static_assert(epilogue_of(Epilogue::gelu_gradient, false) == CUBLASLT_EPILOGUE_DGELU);
static_assert(epilogue_of(Epilogue::bias_gradient, false) == CUBLASLT_EPILOGUE_BGRADA);

template <class T>
void set(cublasLtMatmulDesc_t descriptor, cublasLtMatmulDescAttributes_t attribute,
         const T& value) {
  check(cublasLtMatmulDescSetAttribute(descriptor, attribute, &value, sizeof(value)));
}

std::int64_t bytes_of(cudaDataType_t type) {
  switch (type) {
    case CUDA_R_8F_E4M3:
    case CUDA_R_8F_E5M2: return 1;
    case CUDA_R_16BF:
    case CUDA_R_16F: return 2;
    default: return 4;
  }
}

cublasLtMatrixLayout_t layout(cudaDataType_t type, std::int64_t rows, std::int64_t cols,
                              std::int64_t stride, std::int64_t count, std::int64_t step) {
  cublasLtMatrixLayout_t made = nullptr;
  check(cublasLtMatrixLayoutCreate(&made, type, static_cast<std::uint64_t>(rows),
                                   static_cast<std::uint64_t>(cols), stride));
  const auto matrices = static_cast<std::int32_t>(count);
  check(cublasLtMatrixLayoutSetAttribute(made, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &matrices,
                                         sizeof(matrices)));
  check(cublasLtMatrixLayoutSetAttribute(made, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &step,
                                         sizeof(step)));
  return made;
}

// Sets the pointers of epilogue and scales: the heuristic reads their alignment, the product their
// data.
void point(cublasLtMatmulDesc_t descriptor, const Products::Operands& o) {
  const void* const vector = o.sums != nullptr ? o.sums : o.bias;
  if (vector != nullptr) set(descriptor, CUBLASLT_MATMUL_DESC_BIAS_POINTER, vector);
  if (o.before != nullptr) set(descriptor, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, o.before);
  if (o.b_scale != nullptr) set(descriptor, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, o.b_scale);
  if (o.a_scale != nullptr) set(descriptor, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, o.a_scale);
}

// The alignment of all matrices of a batch.
std::int64_t alignment(cudaDataType_t type, const void* first, std::int64_t step) {
  return alignment_of(reinterpret_cast<std::uintptr_t>(first) |
                      static_cast<std::uint64_t>(step * bytes_of(type)));
}

// What cuBLASLt says of shapes, alignments and epilogues that it has no kernel for.
bool no_algorithm(cublasStatus_t status) {
  return status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_INVALID_VALUE;
}

std::string shapes_text(const std::vector<std::string>& shapes) {
  std::string text = shapes.front();
  if (shapes.size() > 1) text += " and " + std::to_string(shapes.size() - 1) + " more";
  return text;
}

}  // namespace

struct Products::Plan {
  cublasLtMatmulDesc_t product = nullptr;
  cublasLtMatrixLayout_t first = nullptr, second = nullptr, result = nullptr;
  cublasLtMatmulAlgo_t algorithm{};
  bool found = false;
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

void Products::give_up(Plan& plan, const cpu::Gemm& gemm, const Operands& o) {
  plan.found = false;
  auto& shapes = o.a_scale != nullptr           ? widened_
                 : o.epilogue == Epilogue::none ? missing_
                                                : unfused_;
  shapes.push_back(std::to_string(gemm.m) + " x " + std::to_string(gemm.n) + " x " +
                   std::to_string(gemm.k));
}

std::vector<std::string> Products::notes() const {
  std::vector<std::string> notes;
  if (!missing_.empty())
    notes.push_back("cuBLASLt has no algorithm for a product of " + shapes_text(missing_) +
                    ": computed by a slow kernel");
  if (!widened_.empty())
    notes.push_back("cuBLASLt has no algorithm for an fp8 product of " + shapes_text(widened_) +
                    ": computed in 16 bits");
  if (!unfused_.empty())
    notes.push_back("cuBLASLt has no algorithm with an epilogue for a product of " +
                    shapes_text(unfused_) + ": computed by several kernels");
  return notes;
}

void Products::choose(Plan& plan, const Key& key) {
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
  if (!no_algorithm(status)) check(status);
  plan.found = status == CUBLAS_STATUS_SUCCESS && found > 0;
  plan.algorithm = best.algo;
}

void Products::describe(Plan& plan, const cpu::Gemm& gemm, const cpu::Batch& batch,
                        const Operands& o) {
  const auto p = kernels::column_major(gemm);
  check(cublasLtMatmulDescCreate(
      &plan.product,
      tf32_ && o.a_type == CUDA_R_32F ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F,
      CUDA_R_32F));
  set(plan.product, CUBLASLT_MATMUL_DESC_TRANSA, p.transpose_first ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(plan.product, CUBLASLT_MATMUL_DESC_TRANSB, p.transpose_second ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(plan.product, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue_of(o.epilogue, o.bias != nullptr));
  if (o.bias != nullptr || o.sums != nullptr)
    set(plan.product, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, o.c_type);
  if (o.before != nullptr) set(plan.product, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, p.rows);
  point(plan.product, o);
  if (multiprocessors_ > 0)
    set(plan.product, CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET, multiprocessors_);
  plan.first =
      layout(o.b_type, p.first_rows(), p.first_cols(), p.first_stride, batch.count, batch.stride_b);
  plan.second = layout(o.a_type, p.second_rows(), p.second_cols(), p.second_stride, batch.count,
                       batch.stride_a);
  plan.result = layout(o.c_type, p.rows, p.cols, p.result_stride, batch.count, batch.stride_c);
}

Products::Plan& Products::plan_for(const Key& key, const cpu::Gemm& gemm, const cpu::Batch& batch,
                                   const Operands& o) {
  const auto found = plans_.find(key);
  if (found != plans_.end()) return found->second;
  Plan& plan = plans_[key];
  try {
    describe(plan, gemm, batch, o);
    choose(plan, key);
    if (!plan.found) give_up(plan, gemm, o);
  } catch (...) {
    plans_.erase(key);
    throw;
  }
  return plan;
}

bool Products::multiply(cudaStream_t stream, const cpu::Gemm& gemm, const cpu::Batch& batch,
                        const Operands& o) {
  if (gemm.m == 0 || gemm.n == 0 || batch.count == 0) return o.epilogue <= Epilogue::bias;
  const void* const vector = o.sums != nullptr ? o.sums : o.bias;
  const Key key{gemm.m,
                gemm.n,
                gemm.k,
                std::int64_t{gemm.transpose_a} * 2 + gemm.transpose_b,
                gemm.lda,
                gemm.ldb,
                gemm.ldc,
                static_cast<std::int64_t>(epilogue_of(o.epilogue, o.bias != nullptr)),
                gemm.beta != 0,
                batch.count,
                batch.stride_a,
                batch.stride_b,
                batch.stride_c,
                alignment(o.a_type, o.a, batch.stride_a),
                alignment(o.b_type, o.b, batch.stride_b),
                alignment(o.c_type, o.c, batch.stride_c),
                alignment(o.c_type, vector, 0),
                alignment(o.c_type, o.before, 0),
                static_cast<std::int64_t>(o.a_type),
                static_cast<std::int64_t>(o.b_type),
                static_cast<std::int64_t>(o.c_type)};
  Plan& plan = plan_for(key, gemm, batch, o);
  if (!plan.found) return false;
  point(plan.product, o);
  const auto alpha = static_cast<float>(gemm.alpha), beta = static_cast<float>(gemm.beta);
  const cublasStatus_t status = cublasLtMatmul(
      handle_, plan.product, &alpha, o.b, plan.first, o.a, plan.second, &beta, o.c, plan.result,
      o.c, plan.result, &plan.algorithm, workspace_, workspace_bytes, stream);
  if (no_algorithm(status)) give_up(plan, gemm, o);
  if (!no_algorithm(status)) check(status);
  return plan.found;
}

}  // namespace runtime::cuda
