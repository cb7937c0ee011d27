#include "runtime/cpu/optimizer.hpp"

#include <stdexcept>

#include "runtime/cpu/clones.hpp"
#include "runtime/cpu/lanes.hpp"

namespace runtime::cpu {

namespace {

template <class T>
RUNTIME_CLONES void adamw_update(std::int64_t n, const AdamFigures<T>& figures, T* params,
                                 const T* grads, T* m, T* v) {
  const AdamFigures<T> f = figures;
  for (std::int64_t i = 0; i < n; ++i) {
    const T g = grads[i] * f.scale;
    m[i] = f.beta1 * m[i] + f.rest1 * g;
    v[i] = f.beta2 * v[i] + f.rest2 * g * g;
    params[i] -= f.decay * params[i] + f.rate * m[i] / (std::sqrt(v[i] * f.correction) + f.eps);
  }
}

template <class T>
RUNTIME_CLONES void sgd_update(std::int64_t n, T lr, T momentum, T decay, T scale, T* params,
                               const T* grads, T* velocity) {
  for (std::int64_t i = 0; i < n; ++i) {
    T change = grads[i] * scale + decay * params[i];
    if (velocity != nullptr) change = velocity[i] = momentum * velocity[i] + change;
    params[i] -= lr * change;
  }
}

template <class T>
RUNTIME_CLONES double squares(std::int64_t n, const T* x) {
  return lane_sum<double>(n, [=](std::int64_t i) {
    const auto figure = static_cast<double>(x[i]);
    return figure * figure;
  });
}

}  // namespace

template <class T>
void adamw(Out<T> params, In<T> grads, Out<T> m, Out<T> v, const AdamW& how, std::int64_t step,
           double gradient_scale) {
  const auto n = static_cast<std::int64_t>(params.size());
  if (step < 1) throw std::invalid_argument("steps of AdamW count from 1");
  expect_size(grads.size(), n, "grads");
  expect_size(m.size(), n, "m");
  expect_size(v.size(), n, "v");
  adamw_update(n, adam_figures<T>(how, step, gradient_scale), params.data(), grads.data(), m.data(),
               v.data());
}

template <class T>
void sgd(Out<T> params, In<T> grads, Out<T> velocity, const Sgd& how, double gradient_scale) {
  const auto n = static_cast<std::int64_t>(params.size());
  const bool none = velocity.empty() && how.momentum == 0;
  expect_size(grads.size(), n, "grads");
  expect_size(velocity.size(), none ? 0 : n, "velocity");
  sgd_update(n, static_cast<T>(how.lr), static_cast<T>(how.momentum),
             static_cast<T>(how.weight_decay), static_cast<T>(gradient_scale), params.data(),
             grads.data(), none ? nullptr : velocity.data());
}

template <class T>
double sum_of_squares(In<T> grads) {
  return squares(static_cast<std::int64_t>(grads.size()), grads.data());
}

template decltype(adamw<float>) adamw<float>;
template decltype(adamw<double>) adamw<double>;
template decltype(sgd<float>) sgd<float>;
template decltype(sgd<double>) sgd<double>;
template decltype(sum_of_squares<float>) sum_of_squares<float>;
template decltype(sum_of_squares<double>) sum_of_squares<double>;

}  // namespace runtime::cpu
