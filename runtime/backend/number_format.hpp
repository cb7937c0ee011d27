// The number formats of tensors: fp32, bf16, fp16. Arithmetic is done in float.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "costmodel/base/precision.hpp"

namespace runtime {

enum class Number { f32, bf16, f16 };

constexpr std::size_t bytes_of(Number number) { return number == Number::f32 ? 4 : 2; }

// The format of weights and activations. Precisions below 16 bits exist only inside products.
constexpr Number format_of(costmodel::Precision p) {
  if (p == costmodel::Precision::fp32) return Number::f32;
  return p == costmodel::Precision::fp16 ? Number::f16 : Number::bf16;
}

// The upper half of a float: eight bits of exponent, seven of mantissa. Rounds to nearest, ties to
// even; NaN stays NaN.
class Bf16 {
 public:
  Bf16() = default;
  constexpr explicit Bf16(float value) : bits_(rounded(std::bit_cast<std::uint32_t>(value))) {}
  constexpr std::uint16_t bits() const { return bits_; }
  constexpr operator float() const {  // NOLINT: every number of this format is a float
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits_) << 16U);
  }

 private:
  static constexpr std::uint16_t rounded(std::uint32_t bits) {
    if ((bits & 0x7fffffffU) > 0x7f800000U)
      return static_cast<std::uint16_t>(bits >> 16U | 0x0040U);
    const std::uint32_t even = bits >> 16U & 1U;
    return static_cast<std::uint16_t>((bits + 0x7fffU + even) >> 16U);
  }
  std::uint16_t bits_;
};
static_assert(sizeof(Bf16) == 2);

// IEEE 754 binary16: 5 bits of exponent, 10 of mantissa, largest number 65504. Rounds to nearest,
// ties to even; larger values become infinite; NaN stays NaN.
class F16 {
 public:
  F16() = default;
  constexpr explicit F16(float value) : bits_(rounded(value)) {}
  constexpr std::uint16_t bits() const { return bits_; }
  constexpr operator float() const {  // NOLINT: every number of this format is a float
#if defined(__CUDA_ARCH__)
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits_));
    return value;
#else
    const std::uint32_t size = bits_ & 0x7fffU, sign = (bits_ & 0x8000U) << 16U;
    const auto signed_by = [sign](std::uint32_t magnitude) {
      return std::bit_cast<float>(sign | magnitude);
    };
    if (size >= 0x7c00U) return signed_by(0x7f800000U | size << 13U);
    if (size >= 0x0400U) return signed_by((size << 13U) + exponents_apart);
    return signed_by(std::bit_cast<std::uint32_t>(static_cast<float>(size) * smallest));
#endif
  }

 private:
  static constexpr std::uint32_t exponents_apart = (127U - 15U) << 23U;
  static constexpr float smallest = 1.0F / (1U << 24U);

  static constexpr std::uint16_t rounded(float value) {
#if defined(__CUDA_ARCH__)
    std::uint16_t bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
    return bits;
#else
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t size = bits & 0x7fffffffU, sign = bits >> 16U & 0x8000U;
    const auto signed_by = [sign](std::uint32_t magnitude) {
      return static_cast<std::uint16_t>(sign | magnitude);
    };
    if (size > 0x7f800000U) return signed_by(0x7e00U);
    if (size >= 0x477ff000U) return signed_by(0x7c00U);  // from 65520 on
    if (size < 0x38800000U) {  // below 2^-14: after adding 1/2, a float's last bit is `smallest`
      const float beside = std::bit_cast<float>(size) + 0.5F;
      return signed_by(std::bit_cast<std::uint32_t>(beside) - std::bit_cast<std::uint32_t>(0.5F));
    }
    const std::uint32_t even = size >> 13U & 1U;
    return signed_by((size + 0xfffU + even - exponents_apart) >> 13U);
#endif
  }
  std::uint16_t bits_;
};
static_assert(sizeof(F16) == 2);

template <class T>
inline constexpr Number number_of = Number::f32;
template <>
inline constexpr Number number_of<Bf16> = Number::bf16;
template <>
inline constexpr Number number_of<F16> = Number::f16;

// Calls visit(zero) with a zero of the format's type.
template <class Visit>
decltype(auto) in_format(Number number, Visit visit) {
  switch (number) {
    case Number::bf16: return visit(Bf16(0.0F));
    case Number::f16: return visit(F16(0.0F));
    case Number::f32: break;
  }
  return visit(0.0F);
}

// A vector of numbers in device or host memory.
struct Vector {
  void* data = nullptr;
  std::size_t size = 0;  // elements
  Number number = Number::f32;

  Vector() = default;
  Vector(void* first, std::size_t elements, Number format)
      : data(first), size(elements), number(format) {}
  Vector(float* first, std::size_t elements) : data(first), size(elements) {}
  Vector(std::span<float> values) : data(values.data()), size(values.size()) {}     // NOLINT
  Vector(std::vector<float>& values) : data(values.data()), size(values.size()) {}  // NOLINT

  std::size_t bytes() const { return size * bytes_of(number); }
  bool empty() const { return size == 0; }
  Vector subspan(std::size_t begin, std::size_t elements) const {
    return {static_cast<std::byte*>(data) + begin * bytes_of(number), elements, number};
  }
  // The vector as a span of T; empty when T is not its format.
  template <class T>
  std::span<T> as() const {
    return number == number_of<T> ? std::span<T>(static_cast<T*>(data), size) : std::span<T>();
  }
  std::span<float> floats() const { return as<float>(); }
};

}  // namespace runtime
