// The activation of an MLP. Plain: GELU in its tanh form (Hendrycks and Gimpel 2016,
// arXiv:1606.08415), y[rows, cols] of x[rows, cols]. Gated: SwiGLU (Shazeer 2020,
// arXiv:2002.05202), y = silu(gate) · up, x[rows, 2 · cols] = [gate | up]. All throw
// std::invalid_argument on a tensor of the wrong size.
#pragma once

#include "costmodel/operators/op.hpp"
#include "runtime/cpu/view.hpp"

namespace runtime::cpu {

template <class T = float>
void activation_forward(const costmodel::Activation& op, In<T> x, Out<T> y);

// From the saved x; overwrites dx, which has x's shape.
template <class T = float>
void activation_input_gradient(const costmodel::Activation& op, In<T> x, In<T> dy, Out<T> dx);

}  // namespace runtime::cpu
