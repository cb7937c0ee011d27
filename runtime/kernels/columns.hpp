// Column kernels: sums over the rows of a tensor. The executor sums term(row, col) over all rows
// and calls add(col, sum) once per column.
#pragma once

#include "runtime/kernels/rows.hpp"

namespace runtime::kernels {

template <class T>
struct BiasGradient {
  Index cols;
  const T* dy;
  float* dbias;
  RUNTIME_PORTABLE Pair term(Index row, Index col) const {
    return {float(dy[row * cols + col]), 0};
  }
  RUNTIME_PORTABLE void add(Index col, const Pair& sum) const { dbias[col] += sum.first; }
};

template <class T>
struct MaskedBiasGradient {
  Index cols;
  float scale;
  const T* dy;
  const std::uint8_t* mask;
  float* dbias;
  RUNTIME_PORTABLE Pair term(Index row, Index col) const {
    const Index at = row * cols + col;
    return {mask[at] != 0 ? float(dy[at]) * scale : 0.0F, 0};
  }
  RUNTIME_PORTABLE void add(Index col, const Pair& sum) const { dbias[col] += sum.first; }
};

template <class T>
struct NormVectorGradients {
  bool centred;
  Index cols;
  const T* x;
  const float* statistics;  // as written by NormForward
  const T* dy;
  float* dgain;
  float* dshift;  // null: none
  RUNTIME_PORTABLE Pair term(Index row, Index col) const {
    const NormFigures f = kept_figures(centred, statistics, row);
    const Index at = row * cols + col;
    const float d = dy[at];
    return {d * ((float(x[at]) - f.mean) * f.inverse), d};
  }
  RUNTIME_PORTABLE void add(Index col, const Pair& sum) const {
    dgain[col] += sum.first;
    if (dshift != nullptr) dshift[col] += sum.second;
  }
};

// For the query heads or for the key heads: rows are tokens · heads of that kind, columns head_dim.
template <class T>
struct QkVectorGradients {
  QkRows rows;
  bool queries;
  const T* x;
  const float* statistics;  // [rows.rows(), 2], as written by QkNormGradient
  const T* dy;
  float* dgain;   // [head_dim], of this kind
  float* dshift;  // null: none
  constexpr Index heads() const { return queries ? rows.layout.heads : rows.layout.kv_heads; }
  RUNTIME_PORTABLE Pair term(Index row, Index col) const {
    const Index of_kind = queries ? 0 : rows.layout.heads;
    const Index head = row / heads() * rows.heads() + row % heads() + of_kind;
    const Index at = rows.first(head) + col;
    const float d = dy[at];
    return {d * ((float(x[at]) - statistics[2 * head]) * statistics[2 * head + 1]), d};
  }
  RUNTIME_PORTABLE void add(Index col, const Pair& sum) const {
    dgain[col] += sum.first;
    if (dshift != nullptr) dshift[col] += sum.second;
  }
};

}  // namespace runtime::kernels
