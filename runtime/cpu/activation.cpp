#include "runtime/cpu/activation.hpp"

#include "runtime/cpu/clones.hpp"
#include "runtime/cpu/math.hpp"

namespace runtime::cpu {

using namespace costmodel;

namespace {

// GELU is x · sigmoid(2u) with u = √(2/π) · (x + 0.044715 · x³): (1 + tanh u) / 2 = sigmoid(2u).
constexpr double slope = 2 * 0.79788456080286535588;
constexpr double cubic = 0.044715;

template <class T>
RUNTIME_CLONES void gelu(std::int64_t n, const T* x, T* y) {
  constexpr T a = static_cast<T>(slope), b = static_cast<T>(slope * cubic);
  for (std::int64_t i = 0; i < n; ++i) y[i] = x[i] * sigmoid(x[i] * (a + b * x[i] * x[i]));
}

template <class T>
RUNTIME_CLONES void gelu_gradient(std::int64_t n, const T* x, const T* dy, T* dx) {
  constexpr T a = static_cast<T>(slope), b = static_cast<T>(slope * cubic);
  for (std::int64_t i = 0; i < n; ++i) {
    const T square = x[i] * x[i], s = sigmoid(x[i] * (a + b * square));
    dx[i] = dy[i] * (s + x[i] * s * (1 - s) * (a + 3 * b * square));
  }
}

template <class T>
RUNTIME_CLONES void swiglu(std::int64_t n, const T* gate, const T* up, T* y) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = gate[i] * sigmoid(gate[i]) * up[i];
}

template <class T>
RUNTIME_CLONES void swiglu_gradient(std::int64_t n, const T* gate, const T* up, const T* dy,
                                    T* dgate, T* dup) {
  for (std::int64_t i = 0; i < n; ++i) {
    const T s = sigmoid(gate[i]), d = dy[i];
    dgate[i] = d * up[i] * s * (1 + gate[i] * (1 - s));
    dup[i] = d * gate[i] * s;
  }
}

std::int64_t inputs(const Activation& op) { return op.rows * op.cols * (op.gated ? 2 : 1); }

}  // namespace

template <class T>
void activation_forward(const Activation& op, In<T> x, Out<T> y) {
  expect_size(x.size(), inputs(op), "x");
  expect_size(y.size(), op.rows * op.cols, "y");
  if (!op.gated) return gelu(op.rows * op.cols, x.data(), y.data());
  for (std::int64_t row = 0; row < op.rows; ++row) {
    const T* gate = x.data() + 2 * row * op.cols;
    swiglu(op.cols, gate, gate + op.cols, y.data() + row * op.cols);
  }
}

template <class T>
void activation_input_gradient(const Activation& op, In<T> x, In<T> dy, Out<T> dx) {
  expect_size(x.size(), inputs(op), "x");
  expect_size(dy.size(), op.rows * op.cols, "dy");
  expect_size(dx.size(), inputs(op), "dx");
  if (!op.gated) return gelu_gradient(op.rows * op.cols, x.data(), dy.data(), dx.data());
  for (std::int64_t row = 0; row < op.rows; ++row) {
    const T* gate = x.data() + 2 * row * op.cols;
    T* dgate = dx.data() + 2 * row * op.cols;
    swiglu_gradient(op.cols, gate, gate + op.cols, dy.data() + row * op.cols, dgate,
                    dgate + op.cols);
  }
}

template decltype(activation_forward<float>) activation_forward<float>;
template decltype(activation_forward<double>) activation_forward<double>;
template decltype(activation_input_gradient<float>) activation_input_gradient<float>;
template decltype(activation_input_gradient<double>) activation_input_gradient<double>;

}  // namespace runtime::cpu
