#include "runtime/cpu/flash_walk.hpp"

#include <stdexcept>

namespace runtime::cpu {

using namespace costmodel;

HeadLayout layout_of(const FlashAttention& op) {
  return {op.sequences, op.s, op.heads, op.kv_heads, op.head_dim};
}

void expect_flash_shapes(const FlashAttention& op, std::size_t qkv, std::size_t out,
                         std::size_t log_sum_exp) {
  const HeadLayout layout = layout_of(op);
  if (op.key_count() != op.s || op.blocks != 1 || op.value_dim() != op.head_dim) {
    throw std::invalid_argument(
        "flash attention here needs all keys at once and one head_dim for keys and values");
  }
  if (op.heads % op.kv_heads != 0)
    throw std::invalid_argument("flash attention needs kv_heads that divide heads");
  expect_size(qkv, layout.tokens() * layout.columns(), "qkv");
  expect_size(out, layout.tokens() * layout.context_columns(), "out");
  expect_size(log_sum_exp, layout.tokens() * layout.heads, "log_sum_exp");
}

}  // namespace runtime::cpu
