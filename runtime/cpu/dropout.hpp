// Dropout by a counter-based generator: whether an element is kept depends on the seed, the stream
// and the element's row and column in the unsharded tensor, so that shards draw the same mask as
// the unsharded tensor. mask: one byte per element, 1 kept, 0 dropped; kept elements are divided by
// 1 - p. All throw std::invalid_argument on a tensor of the wrong size or a p outside [0, 1).
#pragma once

#include "costmodel/operators/op.hpp"
#include "runtime/cpu/view.hpp"

namespace runtime::cpu {

// The position of this tensor in the unsharded one, which has `global_cols` columns. `stream`
// distinguishes dropout sites (layer, site); rows count over all samples, so micro-batches and
// iterations differ in first_row (backend/op_call.hpp).
struct DropoutKey {
  std::uint64_t seed, stream;
  std::int64_t first_row, first_col, global_cols;
};

using Mask = std::span<std::uint8_t>;
using MaskIn = std::span<const std::uint8_t>;

void dropout_mask(std::int64_t rows, std::int64_t cols, double p, const DropoutKey& key, Mask mask);

// y = x · mask / (1 - p); p = 0 keeps all. Writes the mask. y may alias x.
template <class T = float>
void dropout_forward(const costmodel::Dropout& op, In<T> x, double p, const DropoutKey& key,
                     Out<T> y, Mask mask);
// dx = dy · mask / (1 - p); dx may be dy.
template <class T = float>
void dropout_gradient(const costmodel::Dropout& op, In<T> dy, MaskIn mask, double p, Out<T> dx);

// y = skip + dropout(x + bias) if op.dropout, else y = skip + x + bias with an empty mask.
// bias[cols] may be empty. y may alias x or skip.
template <class T = float>
void bias_dropout_add_forward(const costmodel::BiasDropoutAdd& op, In<T> x, In<T> bias, In<T> skip,
                              double p, const DropoutKey& key, Out<T> y, Mask mask);
// dx as in dropout_gradient; the gradient of skip is dy itself. dx may alias dy.
template <class T = float>
void bias_dropout_add_input_gradient(const costmodel::BiasDropoutAdd& op, In<T> dy, MaskIn mask,
                                     double p, Out<T> dx);
// dbias[cols] += column sums of dx.
template <class T = float>
void bias_dropout_add_weight_gradient(const costmodel::BiasDropoutAdd& op, In<T> dy, MaskIn mask,
                                      double p, Out<T> dbias);

}  // namespace runtime::cpu
