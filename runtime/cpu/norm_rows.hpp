// The norm of one row of n elements, shared by norm.cpp and qk_norm.cpp. T is float or double.
#pragma once

#include "costmodel/model/model_spec.hpp"

namespace runtime::cpu {

template <class T>
struct RowStatistics {
  T mean;     // 0 for RMSNorm
  T inverse;  // 1 / deviation, or 1 / root mean square
};

template <class T>
RowStatistics<T> norm_row_statistics(costmodel::Normalization kind, std::int64_t n, const T* x);

// shift may be null: none.
template <class T>
void norm_row_forward(std::int64_t n, const RowStatistics<T>& statistics, const T* x, const T* gain,
                      const T* shift, T* y);

// Adds to dx if `accumulate`. dx may alias dy.
template <class T>
void norm_row_input_gradient(costmodel::Normalization kind, std::int64_t n,
                             const RowStatistics<T>& statistics, const T* x, const T* gain,
                             const T* dy, T* dx, bool accumulate = false);

// Accumulates into dgain and, unless null, dshift.
template <class T>
void norm_row_weight_gradient(std::int64_t n, const RowStatistics<T>& statistics, const T* x,
                              const T* dy, T* dgain, T* dshift);

}  // namespace runtime::cpu
