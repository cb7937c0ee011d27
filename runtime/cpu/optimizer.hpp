// Optimizer steps on a shard of the parameters. The spans of a call must have one size, or
// std::invalid_argument is thrown. gradient_scale multiplies the gradients first (clipping,
// averaging).
#pragma once

#include <cmath>
#include <cstdint>

#include "runtime/cpu/view.hpp"

namespace runtime::cpu {

// Adam with decoupled weight decay (Loshchilov and Hutter 2017, arXiv:1711.05101).
struct AdamW {
  double lr;
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
};
// The coefficients of one AdamW step, in the parameters' type.
template <class T>
struct AdamFigures {
  T beta1, rest1, beta2, rest2;  // rest: 1 - beta
  T rate;                        // lr / (1 - beta1^step)
  T correction;                  // 1 / (1 - beta2^step)
  T eps, decay, scale;           // decay: lr · weight_decay
};

template <class T>
AdamFigures<T> adam_figures(const AdamW& how, std::int64_t step, double scale) {
  const auto t = [](double figure) { return static_cast<T>(figure); };
  const auto n = static_cast<double>(step);
  return {t(how.beta1),
          t(1 - how.beta1),
          t(how.beta2),
          t(1 - how.beta2),
          t(how.lr / (1 - std::pow(how.beta1, n))),
          t(1 / (1 - std::pow(how.beta2, n))),
          t(how.eps),
          t(how.lr * how.weight_decay),
          t(scale)};
}

// step counts from 1; m and v start at zero.
template <class T = float>
void adamw(Out<T> params, In<T> grads, Out<T> m, Out<T> v, const AdamW& how, std::int64_t step,
           double gradient_scale = 1);

// velocity = momentum · velocity + gradient + weight_decay · parameter; parameter -= lr · velocity.
struct Sgd {
  double lr;
  double momentum = 0, weight_decay = 0;
};
// velocity starts at zero; it may be empty when momentum is 0.
template <class T = float>
void sgd(Out<T> params, In<T> grads, Out<T> velocity, const Sgd& how, double gradient_scale = 1);

// For the gradient norm; summed in double, in an order that depends only on the size.
template <class T = float>
double sum_of_squares(In<T> grads);

}  // namespace runtime::cpu
