// Functions that loops over floats can call and still vectorise: no branches, no library calls,
// identical bytes on every machine. The double versions call the standard library.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace runtime::cpu {

// e^x to 2 units in the last place: x = n · ln 2 + r, and a polynomial in r (Cephes, expf). 0 below
// -87.3 and infinity above 88.3; NaN stays NaN.
[[gnu::always_inline]] inline float exponential(float x) {
  constexpr float lowest = -87.33F, highest = 88.37F;
  constexpr float rounder = 12582912.0F;  // 1.5 · 2^23: adding it leaves an integer in the low bits
  const float low = x < lowest ? lowest : x;
  const float inside = low > highest ? highest : low;
  const float shifted = inside * 1.44269504F + rounder;
  const float n = shifted - rounder;
  const float r = (inside - n * 0.693359375F) - n * -2.12194440e-4F;
  float p = 1.9875691500e-4F;
  p = p * r + 1.3981999507e-3F;
  p = p * r + 8.3334519073e-3F;
  p = p * r + 4.1665795894e-2F;
  p = p * r + 1.6666665459e-1F;
  p = p * r + 5.0000001201e-1F;
  const std::uint32_t power =
      (std::bit_cast<std::uint32_t>(shifted) - std::bit_cast<std::uint32_t>(rounder) + 127U) << 23U;
  const float result = (p * r * r + r + 1.0F) * std::bit_cast<float>(power);
  const float above = x > highest ? std::numeric_limits<float>::infinity() : result;
  return x < lowest ? 0.0F : above;
}

inline double exponential(double x) { return std::exp(x); }

template <class T>
[[gnu::always_inline]] inline T sigmoid(T x) {
  return T(1) / (T(1) + exponential(-x));
}

}  // namespace runtime::cpu
