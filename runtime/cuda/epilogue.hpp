// The numbers of cuBLASLt's epilogues (cublasLtEpilogue_t), without its header.
#pragma once

#include <cstdint>

#include "runtime/kernels/product.hpp"

namespace runtime::cuda {

inline constexpr std::uint32_t epilogue_default = 1, epilogue_bias = 4, epilogue_gelu = 32,
                               epilogue_dgelu = 64, epilogue_aux = 128, epilogue_bgrada = 256;

// The row-major product's b is cuBLASLt's A, whose sums over the inner dimension BGRADA computes:
// so the bias gradient comes in fp32 with the weight gradient, whereas DGELU_BGRAD would round it
// to the activations' 16 bits.
constexpr std::uint32_t epilogue_of(kernels::Epilogue kind, bool bias) {
  switch (kind) {
    case kernels::Epilogue::none: break;
    case kernels::Epilogue::bias: return epilogue_bias;
    case kernels::Epilogue::gelu: return epilogue_gelu | epilogue_aux | (bias ? epilogue_bias : 0U);
    case kernels::Epilogue::gelu_gradient: return epilogue_dgelu | epilogue_aux;
    case kernels::Epilogue::bias_gradient: return epilogue_bgrada;
  }
  return epilogue_default;
}

}  // namespace runtime::cuda
