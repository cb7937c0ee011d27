// The kernels that compute the loss from logits which may be cut over tensor ranks.
#pragma once

#include <array>
#include <string_view>

namespace costmodel {

// unfused: PyTorch's operators one after the other. native: Megatron-LM's fusion, each step
// compiled (core/fusions/fused_cross_entropy.py). te: Transformer Engine's. flash: flash-attn's and
// Shardplan's own, which keep 16-bit logits and make the gradient of them in backward. compiled:
// torch.compile's of the unfused one, which does the same.
enum class LossKernel { unfused, native, te, flash, compiled };
inline constexpr std::array<std::string_view, 5> loss_kernel_names{"unfused", "native", "te",
                                                                   "flash", "compiled"};

// Whether it keeps the logits as they are, and nothing in fp32.
constexpr bool keeps_narrow(LossKernel kernel) {
  return kernel == LossKernel::te || kernel == LossKernel::flash || kernel == LossKernel::compiled;
}

}  // namespace costmodel
