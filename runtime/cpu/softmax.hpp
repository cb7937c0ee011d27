// probabilities = softmax(scale · scores) over the rows of [batch · s, s]: op.rows = batch · s,
// op.cols = s. Both throw std::invalid_argument on a tensor of the wrong size.
#pragma once

#include "costmodel/operators/op.hpp"
#include "runtime/cpu/view.hpp"

namespace runtime::cpu {

// Causal: row i of each block of s rows sees columns 0 ... i; the others get probability 0.
// probabilities may alias scores.
template <class T = float>
void softmax_forward(const costmodel::Softmax& op, double scale, bool causal, In<T> scores,
                     Out<T> probabilities);

// dscores = scale · p · (dp - sum(dp · p)) from the saved probabilities; dscores may alias dp.
template <class T = float>
void softmax_gradient(const costmodel::Softmax& op, double scale, In<T> probabilities,
                      In<T> dprobabilities, Out<T> dscores);

}  // namespace runtime::cpu
