// LayerNorm (Ba et al. 2016, arXiv:1607.06450) and RMSNorm (Zhang and Sennrich 2019,
// arXiv:1910.07467), by op.kind, over the rows of x[rows, cols]; gain[cols], and shift[cols] for
// LayerNorm (empty for RMSNorm). All throw std::invalid_argument on a tensor of the wrong size.
#pragma once

#include "costmodel/operators/op.hpp"
#include "runtime/cpu/view.hpp"

namespace runtime::cpu {

inline constexpr double norm_epsilon = 1e-5;  // added to the variance or the mean square

// The statistics per row that the backward needs: LayerNorm 2 (mean, 1 / deviation), RMSNorm 1 (1 /
// root mean square).
std::int64_t norm_figures(costmodel::Normalization kind);

// Writes y[rows, cols] and statistics[rows, norm_figures].
template <class T = float>
void norm_forward(const costmodel::Norm& op, In<T> x, In<T> gain, In<T> shift, Out<T> y,
                  Out<T> statistics);

// Writes dx[rows, cols], or adds to it if `accumulate`; dx may alias dy.
template <class T = float>
void norm_input_gradient(const costmodel::Norm& op, In<T> x, In<T> gain, In<T> statistics, In<T> dy,
                         Out<T> dx, bool accumulate = false);

// Accumulates into dgain[cols] and, for LayerNorm, dshift[cols].
template <class T = float>
void norm_weight_gradient(const costmodel::Norm& op, In<T> x, In<T> statistics, In<T> dy,
                          Out<T> dgain, Out<T> dshift);

}  // namespace runtime::cpu
