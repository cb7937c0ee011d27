// Matrix products for column-major libraries: a row-major c = op(a) · op(b), read column-major, is
// cᵀ = op(b)ᵀ · op(a)ᵀ.
#pragma once

#include "runtime/backend/number_format.hpp"
#include "runtime/cpu/gemm.hpp"
#include "runtime/kernels/portable.hpp"

namespace runtime::kernels {

// result[rows, cols] = op(first)[rows, inner] · op(second)[inner, cols], all column-major; `first`
// is the row-major product's b, `second` its a.
struct ColumnMajorProduct {
  std::int64_t rows, cols, inner;
  bool transpose_first, transpose_second;
  std::int64_t first_stride, second_stride, result_stride;  // from one stored column to the next
  // Stored sizes: stored_rows x stored_columns.
  std::int64_t first_rows() const { return transpose_first ? inner : rows; }
  std::int64_t first_cols() const { return transpose_first ? rows : inner; }
  std::int64_t second_rows() const { return transpose_second ? cols : inner; }
  std::int64_t second_cols() const { return transpose_second ? inner : cols; }
};

inline ColumnMajorProduct column_major(const cpu::Gemm& g) {
  const auto dense = [](std::int64_t given, std::int64_t columns) {
    return given > 0 ? given : columns;
  };
  return {.rows = g.n,
          .cols = g.m,
          .inner = g.k,
          .transpose_first = g.transpose_b,
          .transpose_second = g.transpose_a,
          .first_stride = dense(g.ldb, g.transpose_b ? g.k : g.n),
          .second_stride = dense(g.lda, g.transpose_a ? g.m : g.k),
          .result_stride = dense(g.ldc, g.n)};
}

// The epilogue of a product (as in cuBLASLt): what is applied to the result before it is written,
// so that no kernel reads it again.
enum class Epilogue {
  none,
  bias,           // c = a · b + bias[n]
  gelu,           // before = a · b (+ bias[n] unless null); c = GELU(before), not rounded between
  gelu_gradient,  // c = (a · b) · GELU'(before)
  bias_gradient,  // c = a · b; sums[n] = column sums of b
};

// `before` has c's shape and format, bias has b's format.
template <class T>
struct Ending {
  Epilogue kind = Epilogue::none;
  const T* bias = nullptr;
  T* before = nullptr;  // read-only for gelu_gradient
  float* sums = nullptr;
};

inline bool on_16_bytes(const void* address) {
  return reinterpret_cast<std::uintptr_t>(address) % 16 == 0;
}

// Whether to ask cuBLASLt for the epilogue; it may still have no algorithm. A bias only on 16
// bytes, because the heuristic cannot be told its alignment and may choose a kernel that loads as
// much at once. GELU epilogues only in 16 bits, because fp32's error bounds leave no room for the
// hardware's tanh (2^-11, PTX ISA), with rows of `before` in multiples of 8 elements and its
// address a multiple of 16 bytes (cublasLt.h, EPILOGUE_AUX_LD and _POINTER). The bias gradient has
// c's format and must be fp32.
template <class T>
bool can_end(const Ending<T>& ending, Number operand, Number result, const cpu::Gemm& g) {
  const bool dense = g.ldc == 0 || g.ldc == g.n;
  switch (ending.kind) {
    case Epilogue::none: return true;
    case Epilogue::bias: return g.beta == 0 && operand == result && on_16_bytes(ending.bias);
    case Epilogue::gelu:
    case Epilogue::gelu_gradient:
      return operand != Number::f32 && operand == result && g.beta == 0 && g.n % 8 == 0 && dense &&
             on_16_bytes(ending.before) && on_16_bytes(ending.bias);
    case Epilogue::bias_gradient: return result == Number::f32 && on_16_bytes(ending.sums);
  }
  return false;
}

// One element of a batch of products, by one thread: for shapes that the library has no algorithm
// for. Accumulates in float.
template <class T, class Result>
class PlainProduct {  // count: elements()
 public:
  PlainProduct(const cpu::Gemm& gemm, const cpu::Batch& batch, const T* a, const T* b, Result* c)
      : gemm_(gemm), batch_(batch), a_(a), b_(b), c_(c) {
    const auto dense = [](std::int64_t given, std::int64_t columns) {
      return given > 0 ? given : columns;
    };
    gemm_.lda = dense(gemm.lda, gemm.transpose_a ? gemm.m : gemm.k);
    gemm_.ldb = dense(gemm.ldb, gemm.transpose_b ? gemm.k : gemm.n);
    gemm_.ldc = dense(gemm.ldc, gemm.n);
  }
  Index elements() const { return batch_.count * gemm_.m * gemm_.n; }
  RUNTIME_PORTABLE void operator()(Index i) const {
    const Index of = i / (gemm_.m * gemm_.n), row = i / gemm_.n % gemm_.m, col = i % gemm_.n;
    const T* a = a_ + of * batch_.stride_a + row * (gemm_.transpose_a ? 1 : gemm_.lda);
    const T* b = b_ + of * batch_.stride_b + col * (gemm_.transpose_b ? gemm_.ldb : 1);
    const Index step_a = gemm_.transpose_a ? gemm_.lda : 1;
    const Index step_b = gemm_.transpose_b ? 1 : gemm_.ldb;
    float sum = 0;
    for (Index k = 0; k < gemm_.k; ++k) sum += float(a[k * step_a]) * float(b[k * step_b]);
    Result& c = c_[of * batch_.stride_c + row * gemm_.ldc + col];
    sum *= static_cast<float>(gemm_.alpha);
    if (gemm_.beta != 0) sum += static_cast<float>(gemm_.beta) * float(c);
    c = Result(sum);
  }

 private:
  cpu::Gemm gemm_;
  cpu::Batch batch_;
  const T* a_;
  const T* b_;
  Result* c_;
};

}  // namespace runtime::kernels
