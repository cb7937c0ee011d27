// The layout of the tensor of queries, keys and values: qkv[tokens, (heads + 2 · kv_heads) ·
// head_dim]. Rows are ordered [sequence][position]; columns are all heads' queries, then all keys,
// then all values. Query head h reads key-value head h / (heads / kv_heads) (grouped-query
// attention, Ainslie et al. 2023, arXiv:2305.13245).
#pragma once

#include <cstdint>

namespace runtime::cpu {

struct HeadLayout {
  std::int64_t sequences, s, heads, kv_heads, head_dim;
  constexpr std::int64_t tokens() const { return sequences * s; }
  constexpr std::int64_t columns() const { return (heads + 2 * kv_heads) * head_dim; }
  constexpr std::int64_t context_columns() const { return heads * head_dim; }
  constexpr std::int64_t share() const { return heads / kv_heads; }
  // Offset in qkv of a head's first element at position 0 of the sequence.
  constexpr std::int64_t query(std::int64_t sequence, std::int64_t head) const {
    return sequence * s * columns() + head * head_dim;
  }
  constexpr std::int64_t key(std::int64_t sequence, std::int64_t kv_head) const {
    return query(sequence, heads + kv_head);
  }
  constexpr std::int64_t value(std::int64_t sequence, std::int64_t kv_head) const {
    return query(sequence, heads + kv_heads + kv_head);
  }
};

// The position of a row in its sequence. Rows of a tensor sharded along the sequence begin at
// `first_row` of the unsharded tensor; `offset` is added when a rank holds a later part of every
// sequence.
struct RowPositions {
  std::int64_t s;
  std::int64_t first_row = 0;
  std::int64_t offset = 0;
  constexpr std::int64_t at(std::int64_t row) const { return (first_row + row) % s + offset; }
};

}  // namespace runtime::cpu
