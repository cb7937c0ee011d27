// The kernels that compute the loss from logits which may be cut over tensor ranks.
#pragma once

#include <array>
#include <string_view>

namespace costmodel {

// unfused: PyTorch's operators one after the other. native: Megatron-LM's fusion, each step
// compiled (core/fusions/fused_cross_entropy.py). te: Transformer Engine's. flash: flash-attn's and
// Shardplan's own, which keep 16-bit logits and make the gradient of them in backward.
enum class LossKernel { unfused, native, te, flash };
inline constexpr std::array<std::string_view, 4> loss_kernel_names{"unfused", "native", "te",
                                                                   "flash"};

}  // namespace costmodel
