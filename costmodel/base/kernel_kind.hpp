// The kinds by which profiles of iterations sum up their kernels.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace costmodel {

enum class KernelKind {
  products,
  attention_forward,
  attention_backward,
  elementwise,
  copies,
  loss,
  optimizer,
  indexing,
};
inline constexpr std::size_t kernel_kind_count = 8;
inline constexpr std::array<std::string_view, kernel_kind_count> kernel_kind_names{
    "products",         "attention forward", "attention backward", "element-wise, fused, norms",
    "copies and casts", "softmax and loss",  "optimizer and norm", "embedding, routing, sort"};
// As files have them.
inline constexpr std::array<std::string_view, kernel_kind_count> kernel_kind_keys{
    "products",  "attention_forward", "attention_backward", "elementwise", "copies", "loss",
    "optimizer", "indexing"};

}  // namespace costmodel
