// The traversal of blocks that the forward and the backward of flash attention share.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "runtime/cpu/flash_attention.hpp"
#include "runtime/cpu/gemm.hpp"

namespace runtime::cpu {

// Throws like flash_attention_forward.
void expect_flash_shapes(const costmodel::FlashAttention& op, std::size_t qkv, std::size_t out,
                         std::size_t log_sum_exp);

// A block of `queries` rows from row `first` on, of one head of one sequence.
struct QueryBlock {
  std::int64_t sequence, head, first, queries;
};
struct KeyBlock {
  std::int64_t first, keys;
};

// The state of both directions: the qkv tensor, the scale, and scratch memory for one block of
// scores, [queries, keys] with row stride flash_block.
template <class T>
class Walk {
 public:
  Walk(const costmodel::FlashAttention& op, In<T> qkv)
      : layout_(layout_of(op)),
        scale_(1 / std::sqrt(static_cast<double>(op.head_dim))),
        qkv_(qkv),
        scores_(flash_block * flash_block) {}

 protected:
  // Calls visit(block) for all query blocks of all heads of all sequences.
  template <class Visit>
  void for_each_query_block(Visit visit) const {
    for (std::int64_t head = 0; head < layout_.sequences * layout_.heads; ++head) {
      for (std::int64_t first = 0; first < layout_.s; first += flash_block) {
        visit(QueryBlock{head / layout_.heads, head % layout_.heads, first,
                         std::min(flash_block, layout_.s - first)});
      }
    }
  }

  // Calls visit(block) for the key blocks that some query of the block sees.
  template <class Visit>
  static void for_each_key_block(const QueryBlock& q, Visit visit) {
    const std::int64_t end = q.first + q.queries;
    for (std::int64_t first = 0; first < end; first += flash_block)
      visit(KeyBlock{first, std::min(flash_block, end - first)});
  }

  // The number of keys of the block that query `row` sees (the causal mask).
  static std::int64_t visible(const QueryBlock& q, const KeyBlock& k, std::int64_t row) {
    return std::min(k.keys, q.first + row + 1 - k.first);
  }

  std::int64_t kv_head(const QueryBlock& q) const { return q.head / layout_.share(); }
  std::size_t query_at(const QueryBlock& q) const {
    return static_cast<std::size_t>(layout_.query(q.sequence, q.head) +
                                    q.first * layout_.columns());
  }
  std::size_t key_at(const QueryBlock& q, const KeyBlock& k) const {
    return static_cast<std::size_t>(layout_.key(q.sequence, kv_head(q)) +
                                    k.first * layout_.columns());
  }
  std::size_t value_at(const QueryBlock& q, const KeyBlock& k) const {
    return static_cast<std::size_t>(layout_.value(q.sequence, kv_head(q)) +
                                    k.first * layout_.columns());
  }
  // Offsets in out and dout, and in log_sum_exp.
  std::size_t out_at(const QueryBlock& q, std::int64_t row = 0) const {
    return static_cast<std::size_t>((q.sequence * layout_.s + q.first + row) *
                                        layout_.context_columns() +
                                    q.head * layout_.head_dim);
  }
  std::size_t figure_at(const QueryBlock& q, std::int64_t row) const {
    return static_cast<std::size_t>((q.sequence * layout_.s + q.first + row) * layout_.heads +
                                    q.head);
  }

  // scores = a[queries, head_dim] · b[keys, head_dim]ᵀ.
  void multiply_heads(const QueryBlock& q, const KeyBlock& k, In<T> a, std::int64_t lda, In<T> b,
                      std::vector<T>& scores) const {
    gemm<T>({.m = q.queries,
             .n = k.keys,
             .k = layout_.head_dim,
             .transpose_b = true,
             .lda = lda,
             .ldb = layout_.columns(),
             .ldc = flash_block},
            a, b, scores);
  }

  HeadLayout layout_;
  double scale_;
  In<T> qkv_;
  std::vector<T> scores_;
};

}  // namespace runtime::cpu
