// KernelDevice's products, with the activations fused into them.
#pragma once

#include "runtime/kernels/kernel_device_class.hpp"

namespace runtime::kernels {

namespace detail {

inline cpu::Gemm forward_product(const OpCall& call, const costmodel::Linear& op) {
  return {.m = op.m, .n = op.n, .k = op.k, .transpose_b = call.table_layout};
}

inline cpu::Gemm input_gradient_product(const OpCall& call, const costmodel::Linear& op) {
  return {.m = op.m, .n = op.k, .k = op.n, .transpose_b = !call.table_layout};
}

}  // namespace detail

template <class Executor, class T>
void KernelDevice<Executor, T>::forward(const OpCall& call, const costmodel::Linear& op) {
  const T* x = checked(call.inputs[0], op.m * op.k, "x");
  const T* w = checked(call.matrix, op.k * op.n, "the weight");
  const T* bias = call.bias.empty() ? nullptr : checked(call.bias, op.n, "bias");
  in_its_format(call.output, op.m * op.n, "y", [&](auto* y) {
    const Operand left{x, op.m, op.k}, right{w, op.k, op.n, true};
    const cpu::Gemm gemm = detail::forward_product(call, op);
    const auto ends = [&](const Ending<T>& ending) {
      return fp8_product<E4M3, E4M3>(call, left, right, ending, 0, y) ||
             product(gemm, x, w, ending, y);
    };
    if (bias != nullptr && ends({.kind = Epilogue::bias, .bias = bias})) return;
    if (!fp8_product<E4M3, E4M3>(call, left, right, Ending<T>{}, 0, y)) product(gemm, x, w, y);
    if (bias != nullptr) run_.elements(op.m * op.n, AddBias{op.n, bias, y});
  });
}

template <class Executor, class T>
void KernelDevice<Executor, T>::forward_fused(const OpCall& linear, const OpCall& activation) {
  run_.doing(linear.node.name());
  const auto& op = std::get<costmodel::Linear>(linear.node.op);
  const T* x = checked(linear.inputs[0], op.m * op.k, "x");
  const T* w = checked(linear.matrix, op.k * op.n, "the weight");
  const Ending<T> ending{.kind = Epilogue::gelu,
                         .bias = linear.bias.empty() ? nullptr : checked(linear.bias, op.n, "bias"),
                         .before = checked(linear.output, op.m * op.n, "the activation's input")};
  T* y = checked(activation.output, op.m * op.n, "y");
  if (!product(detail::forward_product(linear, op), x, w, ending, y))
    Device::forward_fused(linear, activation);
}

template <class Executor, class T>
void KernelDevice<Executor, T>::input_gradient_fused(const OpCall& linear,
                                                     const OpCall& activation) {
  run_.doing(linear.node.name());
  const auto& op = std::get<costmodel::Linear>(linear.node.op);
  const T* dy = checked(linear.output_gradient, op.m * op.n, "dy");
  const T* w = checked(linear.matrix, op.k * op.n, "the weight");
  const Ending<T> ending{
      .kind = Epilogue::gelu_gradient,
      .before = checked(activation.inputs[0], op.m * op.k, "the activation's input")};
  T* dx = checked(linear.input_gradients[0], op.m * op.k, "dx");
  if (!product(detail::input_gradient_product(linear, op), dy, w, ending, dx))
    Device::input_gradient_fused(linear, activation);
}

// The gradient of a product's result as T; a float one is rounded into scratch memory.
template <class Executor, class T>
const T* KernelDevice<Executor, T>::result_gradient(const OpCall& call, Index elements) {
  const Tensor& dy = call.output_gradient;
  const bool wide =
      sizeof(T) < sizeof(float) && dy.bytes == static_cast<std::size_t>(elements) * sizeof(float);
  if (!wide) return checked(dy, elements, "dy");
  T* rounded = scratch(elements);
  run_.elements(elements, Rounded<T>{dy.floats().data(), rounded});
  return rounded;
}

template <class Executor, class T>
void KernelDevice<Executor, T>::gradient(const OpCall& call, const costmodel::Linear& op) {
  const T* dy = result_gradient(call, op.m * op.n);
  const T* w = checked(call.matrix, op.k * op.n, "the weight");
  T* dx = checked(call.input_gradients[0], op.m * op.k, "dx");
  const Operand left{dy, op.m, op.n}, right{w, op.k, op.n};
  if (!fp8_product<E5M2, E4M3>(call, left, right, Ending<T>{}, 0, dx))
    product(detail::input_gradient_product(call, op), dy, w, dx);
}

// Only products with an [n, k] matrix (token table, output projection) can have a result in another
// format than T, and they have no bias.
template <class Executor, class T>
void KernelDevice<Executor, T>::weight_gradient(const OpCall& call) {
  run_.doing(call.node.name());
  const auto& op = std::get<costmodel::Linear>(call.node.op);
  const T* dy = result_gradient(call, op.m * op.n);
  const T* x = checked(call.inputs[0], op.m * op.k, "x");
  float* dw = checked(call.matrix_gradient, op.k * op.n, "the weight's gradient");
  if (call.table_layout) {
    const cpu::Gemm of_table{.m = op.n, .n = op.k, .k = op.m, .transpose_a = true, .beta = 1};
    return product(of_table, dy, x, dw);
  }
  float* dbias = call.bias_gradient.empty() ? nullptr : checked(call.bias_gradient, op.n, "dbias");
  const cpu::Gemm gemm{.m = op.k, .n = op.n, .k = op.m, .transpose_a = true, .beta = 1};
  const Operand left{x, op.m, op.k, true}, right{dy, op.m, op.n, true};
  if (fp8_product<E4M3, E5M2>(call, left, right, Ending<T>{}, 1, dw)) {
    if (dbias != nullptr) run_.columns(op.m, op.n, BiasGradient<T>{op.n, dy, dbias});
    return;
  }
  if (dbias == nullptr)
    product(gemm, x, dy, dw);
  else
    weight_and_bias_gradient(gemm, x, dy, dw, dbias);
}

template <class Executor, class T>
void KernelDevice<Executor, T>::weight_and_bias_gradient(const cpu::Gemm& gemm, const T* x,
                                                         const T* dy, float* dw, float* dbias) {
  float* const sums = run_.scratch(gemm.n);
  if (product(gemm, x, dy, Ending<T>{.kind = Epilogue::bias_gradient, .sums = sums}, dw))
    return run_.elements(gemm.n, AddTo<float>{sums, dbias});
  product(gemm, x, dy, dw);
  run_.columns(gemm.k, gemm.n, BiasGradient<T>{gemm.n, dy, dbias});
}

}  // namespace runtime::kernels
