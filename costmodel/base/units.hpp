// Quantities with a dimension, checked at compile time: Seconds + Bytes does not compile, and Bytes
// / BytesPerSecond is Seconds. Base units are seconds, bytes and floating-point operations (a fused
// multiply-add counts as two).
#pragma once

#include <compare>

namespace costmodel {

template <class Dimension>
struct Quantity {
  double value = 0;

  constexpr Quantity() = default;
  constexpr explicit Quantity(double v) : value(v) {}

  constexpr Quantity& operator+=(Quantity o) {
    value += o.value;
    return *this;
  }
  constexpr Quantity& operator-=(Quantity o) {
    value -= o.value;
    return *this;
  }
  constexpr Quantity& operator*=(double f) {
    value *= f;
    return *this;
  }

  friend constexpr Quantity operator+(Quantity a, Quantity b) {
    return Quantity(a.value + b.value);
  }
  friend constexpr Quantity operator-(Quantity a, Quantity b) {
    return Quantity(a.value - b.value);
  }
  friend constexpr Quantity operator*(Quantity a, double f) { return Quantity(a.value * f); }
  friend constexpr Quantity operator*(double f, Quantity a) { return Quantity(a.value * f); }
  friend constexpr Quantity operator/(Quantity a, double f) { return Quantity(a.value / f); }
  friend constexpr double operator/(Quantity a, Quantity b) { return a.value / b.value; }
  friend constexpr auto operator<=>(Quantity a, Quantity b) = default;
};

using Seconds = Quantity<struct TimeDimension>;
using Bytes = Quantity<struct SizeDimension>;
using Flops = Quantity<struct WorkDimension>;
using BytesPerSecond = Quantity<struct BandwidthDimension>;
using FlopsPerSecond = Quantity<struct RateDimension>;

constexpr Seconds operator/(Bytes b, BytesPerSecond r) { return Seconds(b.value / r.value); }
constexpr Seconds operator/(Flops f, FlopsPerSecond r) { return Seconds(f.value / r.value); }

template <class D>
constexpr Quantity<D> max(Quantity<D> a, Quantity<D> b) {
  return a.value < b.value ? b : a;
}
template <class D>
constexpr Quantity<D> min(Quantity<D> a, Quantity<D> b) {
  return b.value < a.value ? b : a;
}

// The smallest integer >= a / b, exactly, for a >= 0 and b > 0.
constexpr long long ceil_div(long long a, long long b) { return (a + b - 1) / b; }

}  // namespace costmodel
