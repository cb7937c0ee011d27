// The formats in which tensors are kept. Arithmetic is done in float.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace runtime {

enum class Number { f32, bf16 };

constexpr std::size_t bytes_of(Number number) { return number == Number::f32 ? 4 : 2; }

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

template <class T>
inline constexpr Number number_of = Number::f32;
template <>
inline constexpr Number number_of<Bf16> = Number::bf16;

// Numbers in some memory, perhaps not the host's.
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
  // As T, which is its format: empty where it is not.
  template <class T>
  std::span<T> as() const {
    return number == number_of<T> ? std::span<T>(static_cast<T*>(data), size) : std::span<T>();
  }
  std::span<float> floats() const { return as<float>(); }
};

}  // namespace runtime
