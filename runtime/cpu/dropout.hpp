// Dropout by a counter: whether an element is kept depends on the seed, the stream and the
// element's row and column in the whole tensor, so that a tensor cut over ranks draws what the
// whole one would. mask: one byte an element, 1 kept, 0 dropped; kept elements are divided by 1 -
// p. All throw std::invalid_argument on a tensor of another size or a p outside [0, 1).
#pragma once

#include "costmodel/operators/op.hpp"
#include "runtime/cpu/view.hpp"

namespace runtime::cpu {

// Where this tensor stands in the whole one, which has `global_cols` columns. `stream` tells apart
// the dropouts of one iteration (layer, site, micro-batch) and the iterations.
struct DropoutKey {
  std::uint64_t seed, stream;
  std::int64_t first_row, first_col, global_cols;
};

using Mask = std::span<std::uint8_t>;
using MaskIn = std::span<const std::uint8_t>;

void dropout_mask(std::int64_t rows, std::int64_t cols, double p, const DropoutKey& key, Mask mask);

// y = x · mask / (1 - p); p = 0 keeps all. y may be x. Writes the mask.
template <class T = float>
void dropout_forward(const costmodel::Dropout& op, In<T> x, double p, const DropoutKey& key,
                     Out<T> y, Mask mask);
// dx = dy · mask / (1 - p); dx may be dy.
template <class T = float>
void dropout_gradient(const costmodel::Dropout& op, In<T> dy, MaskIn mask, double p, Out<T> dx);

// y = skip + dropout(x + bias), where op.dropout; else y = skip + x + bias, and mask is empty.
// bias[cols] may be empty. y may be x or skip.
template <class T = float>
void bias_dropout_add_forward(const costmodel::BiasDropoutAdd& op, In<T> x, In<T> bias, In<T> skip,
                              double p, const DropoutKey& key, Out<T> y, Mask mask);
// dx as of dropout; the gradient of skip is dy itself. dx may be dy.
template <class T = float>
void bias_dropout_add_input_gradient(const costmodel::BiasDropoutAdd& op, In<T> dy, MaskIn mask,
                                     double p, Out<T> dx);
// dbias[cols] += sums of the columns of dx.
template <class T = float>
void bias_dropout_add_weight_gradient(const costmodel::BiasDropoutAdd& op, In<T> dy, MaskIn mask,
                                      double p, Out<T> dbias);

}  // namespace runtime::cpu
