// The 8-bit formats that fp8 products read, from the OCP 8-bit Floating Point Specification (OFP8,
// revision 1.0, table 2): E4M3 for weights and activations, E5M2 for gradients (Micikevicius et al.
// 2022, arXiv:2209.05433). No tensor is stored in them between operators.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

namespace runtime {

// `Largest` is the code of the largest finite number. Rounds to nearest, ties to even; larger
// values and infinities saturate; NaN stays NaN. GPUs' cvt.rn.satfinite does the same (PTX ISA).
template <int Mantissa, int Bias, std::uint8_t Largest>
class Fp8 {
 public:
  static constexpr float largest =
      std::bit_cast<float>((std::uint32_t{Largest} << (23 - Mantissa)) + ((127U - Bias) << 23U));
  static constexpr float smallest =  // the smallest positive number
      std::bit_cast<float>(static_cast<std::uint32_t>(128 - Bias - Mantissa) << 23U);

  Fp8() = default;
  constexpr explicit Fp8(float value) : bits_(rounded(value)) {}
  constexpr std::uint8_t bits() const { return bits_; }
  constexpr explicit operator float() const {
    const std::uint32_t size = bits_ & 0x7fU, sign = (bits_ & 0x80U) << 24U;
    const auto signed_by = [sign](std::uint32_t magnitude) {
      return std::bit_cast<float>(sign | magnitude);
    };
    if (Mantissa == 2 && size == Largest + 1U) return signed_by(0x7f800000U);
    if (size > Largest) return signed_by(0x7fc00000U);
    if (size < 1U << Mantissa)
      return signed_by(std::bit_cast<std::uint32_t>(static_cast<float>(size) * smallest));
    return signed_by((size << shift) + exponents_apart);
  }

 private:
  static constexpr unsigned shift = 23 - Mantissa;
  static constexpr std::uint32_t exponents_apart = (127U - Bias) << 23U;

  static constexpr std::uint8_t rounded(float value) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
    std::uint16_t two;
    if constexpr (Mantissa == 3)
      asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(two) : "f"(0.0F), "f"(value));
    else
      asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(two) : "f"(0.0F), "f"(value));
    return static_cast<std::uint8_t>(two);
#else
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t size = bits & 0x7fffffffU, sign = bits >> 24U & 0x80U;
    const auto signed_by = [sign](std::uint32_t magnitude) {
      return static_cast<std::uint8_t>(sign | magnitude);
    };
    if (size > 0x7f800000U) return 0x7fU;
    if (size < (128U - Bias) << 23U) {  // after adding this, a float's last bit is worth `smallest`
      constexpr auto beside = static_cast<std::uint32_t>(151 - Bias - Mantissa) << 23U;
      const float sum = std::bit_cast<float>(size) + std::bit_cast<float>(beside);
      return signed_by(std::bit_cast<std::uint32_t>(sum) - beside);
    }
    const std::uint32_t even = size >> shift & 1U;
    const std::uint32_t code = (size + (1U << (shift - 1)) - 1 + even - exponents_apart) >> shift;
    return signed_by(code < Largest ? code : Largest);
#endif
  }
  std::uint8_t bits_;
};

using E4M3 = Fp8<3, 7, 0x7e>;   // 448 at most, no infinity
using E5M2 = Fp8<2, 15, 0x7b>;  // 57344 at most
static_assert(sizeof(E4M3) == 1 && E4M3::largest == 448 && E4M3::smallest == 0x1p-9F);
static_assert(sizeof(E5M2) == 1 && E5M2::largest == 57344 && E5M2::smallest == 0x1p-16F);

// The factor that maps a tensor's largest magnitude to the format's largest number (Transformer
// Engine's current scaling); 1 when that magnitude is 0, infinite or NaN.
template <class Format>
constexpr float fp8_scale(float largest_magnitude) {
  constexpr float most = std::numeric_limits<float>::max();
  if (!(largest_magnitude > 0 && largest_magnitude <= most)) return 1;
  if (largest_magnitude < Format::largest / most) return most;
  return Format::largest / largest_magnitude;
}

}  // namespace runtime
