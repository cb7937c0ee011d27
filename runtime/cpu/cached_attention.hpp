// Attention to keys and values that are cached in blocks (PagedAttention, Kwon et al. 2023,
// arXiv:2309.06180, section 4.3).
#pragma once

#include <cstdint>
#include <span>

#include "runtime/cpu/head_layout.hpp"
#include "runtime/cpu/view.hpp"

namespace runtime::cpu {

// One layer's keys and values of some sequences. A block holds those of `block_size` tokens:
// keys[kv_heads][block_size][head_dim], then the values in the same order.
struct CachedKeys {
  std::span<float* const> blocks;  // [sequences][blocks_each], those in use
  std::int64_t blocks_each = 0;
  std::int64_t block_size = 16;
  std::int64_t before = 0;  // tokens of every sequence that were cached before
};

constexpr std::int64_t block_elements(const HeadLayout& layout, std::int64_t block_size) {
  return 2 * layout.kv_heads * block_size * layout.head_dim;
}

// Copies the keys and values of qkv[tokens, layout.columns()] to positions before ... before + s -
// 1 of their sequences. Throws std::invalid_argument when the table has no room for them.
void append_to_cache(const HeadLayout& layout, const CachedKeys& cache, In<float> qkv);

// context[tokens, heads · head_dim] = softmax(q · Kᵀ / sqrt(head_dim)) · V. Token i of a sequence
// attends to its first before + i + 1 tokens, which are all in the cache.
void cached_attention(const HeadLayout& layout, const CachedKeys& cache, In<float> qkv,
                      Out<float> context);

}  // namespace runtime::cpu
