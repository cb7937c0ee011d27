// Number formats of training. A precision is the format of the matrix products. Activations and
// parameters are stored in its storage format: 4 bytes for fp32, 2 bytes otherwise (8- and 4-bit
// copies exist only as operands of a product).
#pragma once

#include <array>
#include <string_view>

#include "costmodel/base/units.hpp"

namespace costmodel {

enum class Precision { fp32, fp16, bf16, fp8, mxfp8, nvfp4 };
inline constexpr std::array<std::string_view, 6> precision_names{"fp32", "fp16",  "bf16",
                                                                 "fp8",  "mxfp8", "nvfp4"};
inline constexpr std::size_t precision_count = precision_names.size();

constexpr std::string_view to_string(Precision p) {
  return precision_names[static_cast<std::size_t>(p)];
}
constexpr double storage_bytes(Precision p) { return p == Precision::fp32 ? 4 : 2; }

// Narrower than 16 bits: only product operands have this format; all other tensors have 16 bits.
inline bool is_narrow(Precision p) {
  return p == Precision::fp8 || p == Precision::mxfp8 || p == Precision::nvfp4;
}

// Bytes per element of a product's operand, without block scales.
inline double operand_bytes(Precision p) {
  return p == Precision::nvfp4 ? 0.5 : is_narrow(p) ? 1 : storage_bytes(p);
}

}  // namespace costmodel
