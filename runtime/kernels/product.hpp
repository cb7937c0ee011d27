// Matrix products as libraries with column-major matrices take them: a row-major c = op(a) · op(b)
// is, read column by column, cᵀ = op(b)ᵀ · op(a)ᵀ.
#pragma once

#include "runtime/cpu/gemm.hpp"

namespace runtime::kernels {

// result[rows, cols] = op(first)[rows, inner] · op(second)[inner, cols], all column-major; `first`
// is the row-major product's b and `second` its a.
struct ColumnMajorProduct {
  std::int64_t rows, cols, inner;
  bool transpose_first, transpose_second;
  std::int64_t first_stride, second_stride, result_stride;  // from one stored column to the next
  // A stored matrix is stored_rows · stored_columns.
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

}  // namespace runtime::kernels
