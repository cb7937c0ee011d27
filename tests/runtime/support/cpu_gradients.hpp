// Shared by the tests of the CPU kernels: random tensors, and gradients by finite differences.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "runtime/cpu/random.hpp"

namespace cpu_test {

using Doubles = std::vector<double>;

template <class T = double>
std::vector<T> normals(std::int64_t n, std::uint64_t stream) {
  std::vector<T> values(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<T>(runtime::cpu::normal(7, stream, i));
  return values;
}

template <class T = double>
std::vector<T> zeros(std::int64_t n) {
  return std::vector<T>(static_cast<std::size_t>(n));
}

// What kernels that overwrite must not read.
template <class T = double>
std::vector<T> unset(std::int64_t n) {
  return std::vector<T>(static_cast<std::size_t>(n), std::numeric_limits<T>::quiet_NaN());
}

template <class T, class From>
std::vector<T> to(const std::vector<From>& from) {
  return std::vector<T>(from.begin(), from.end());
}

template <class T>
std::vector<T> absolute(std::vector<T> x) {
  for (T& element : x) element = std::abs(element);
  return x;
}

inline double dot(const Doubles& a, const Doubles& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// The largest difference of two tensors, in units of the largest element of `b`; infinite where
// anything is NaN or the sizes differ.
template <class A, class B>
double distance(const std::vector<A>& a, const std::vector<B>& b) {
  double worst = 0, largest = 0;
  if (a.size() != b.size()) return std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double difference = std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
    if (!(difference <= worst)) worst = difference;
    if (std::isnan(difference)) return std::numeric_limits<double>::infinity();
    largest = std::max(largest, std::abs(static_cast<double>(b[i])));
  }
  return largest > 0 ? worst / largest : worst;
}

// The gradient of loss() by central differences of each element of x, which loss() reads.
template <class Loss>
Doubles differences(Doubles& x, Loss loss) {
  constexpr double step = 1e-4;
  Doubles gradient;
  for (double& element : x) {
    const double middle = element;
    element = middle + step;
    const double above = loss();
    element = middle - step;
    const double below = loss();
    element = middle;
    gradient.push_back((above - below) / (2 * step));
  }
  return gradient;
}

// Third derivatives of order one times step² / 6 leave 2e-9, and the roundings of a loss of some
// hundred, over 2 · step, 1e-10.
inline constexpr double difference_bound = 1e-8;
// Of a float kernel from the same in double, for rows of a few dozen elements: eight roundings of
// the largest. For kernels without products, which round in one order on every machine
// (clones.hpp); for products see rounding.hpp.
inline constexpr double float_bound = 8 * 0x1p-24;

}  // namespace cpu_test
