// Blockwise attention on tensor cores that stores no scores (FlashAttention 2, Dao 2023,
// arXiv:2307.08691), in bf16 or fp16 (T), for head dimensions D = 64 and 128. A thread block is
// four warps; each has 16 rows of a 64-row tile and multiplies 16 x 8 x 16 fragments (PTX ISA,
// mma.m16n8k16 and ldmatrix). The backward is two kernels, one for queries and one for keys and
// values, without atomics, so that the order of summation is fixed.
//
// A Cta is the thread block: thread() and sync() and, per warp, mma(), load(), load_transposed(),
// exchange() and pack(). Tests provide one on the host.
#pragma once

#include "runtime/backend/number_format.hpp"
#include "runtime/cpu/head_layout.hpp"
#include "runtime/kernels/portable.hpp"

namespace runtime::kernels {

inline constexpr int flash_tile = 64, flash_threads = 128, flash_warp_rows = 16;

using Fragment = std::uint32_t[4];  // 16 x 16 of operand A, or two 16 x 8 of operand B
using Sums = float[4];              // 16 x 8 accumulators: rows g, g + 8; columns 2t, 2t + 1

template <class T>
struct alignas(16) EightOf {
  T value[8];
};

inline constexpr float log2_of_e = 1.4426950408889634F, ln_2 = 0.6931471805599453F;

RUNTIME_PORTABLE float power_of_two(float x) {
#if defined(__CUDA_ARCH__)
  return exp2f(x);
#else
  return std::exp2(x);
#endif
}

// The rows of a head: its first element and the row stride, in elements.
template <class T>
struct HeadRows {
  T* first;
  Index step;
};

template <int D, class T>
struct FlashTiles {
  static_assert(D % 16 == 0 && sizeof(T) == 2);
  static constexpr int width = D + 8;  // padded row stride in shared memory, against bank conflicts
  static constexpr int tile = flash_tile * width;
  static constexpr int steps = D / 16, parts = D / 8, key_parts = flash_tile / 8;

  // Loads rows [first, first + 64) into a tile; zeros from row `end` on.
  template <class Cta>
  static RUNTIME_PORTABLE void fetch(const Cta& cta, const HeadRows<const T>& rows, Index first,
                                     Index end, T* to) {
    for (int i = cta.thread(); i < flash_tile * D / 8; i += flash_threads) {
      const int row = i / (D / 8), col = i % (D / 8) * 8;
      EightOf<T> values{};
      if (first + row < end)
        values = *reinterpret_cast<const EightOf<T>*>(rows.first + (first + row) * rows.step + col);
      *reinterpret_cast<EightOf<T>*>(to + row * width + col) = values;
    }
  }

  // Loads the 16 x 16 fragment at (row, col) of a tile as operand A.
  template <class Cta>
  static RUNTIME_PORTABLE void first_operand(const Cta& cta, const T* tile_rows, int row, int col,
                                             Fragment& to) {
    const int lane = cta.thread() % 32;
    cta.load(to, tile_rows + (row + lane / 8 % 2 * 8 + lane % 8) * width + col + lane / 16 * 8);
  }

  // sums[16, 8 · count] += a[16, D] · tileᵀ of the first 8 · count rows of the tile; a(step, to)
  // loads the fragments of a.
  template <int count, class Cta, class FirstOperand>
  static RUNTIME_PORTABLE void multiply_rows(const Cta& cta, FirstOperand a, const T* tile_rows,
                                             Sums (&sums)[count]) {
    const int lane = cta.thread() % 32;
    RUNTIME_UNROLL
    for (int step = 0; step < steps; ++step) {
      Fragment left;
      a(step, left);
      RUNTIME_UNROLL
      for (int part = 0; part < count; part += 2) {
        Fragment right;
        cta.load(right, tile_rows + (part * 8 + lane / 16 * 8 + lane % 8) * width + step * 16 +
                            lane / 8 % 2 * 8);
        cta.template mma<T>(sums[part], left, right[0], right[1]);
        cta.template mma<T>(sums[part + 1], left, right[2], right[3]);
      }
    }
  }

  // sums[16, D] += values[16, 8 · count] · tile; values are a result of multiply_rows.
  template <int count, class Cta>
  static RUNTIME_PORTABLE void multiply_columns(const Cta& cta, const Sums (&values)[count],
                                                const T* tile_rows, Sums (&sums)[parts]) {
    const int lane = cta.thread() % 32;
    RUNTIME_UNROLL
    for (int step = 0; step < count / 2; ++step) {
      const Sums& low = values[2 * step];
      const Sums& high = values[2 * step + 1];
      const Fragment left{
          cta.template pack<T>(low[0], low[1]), cta.template pack<T>(low[2], low[3]),
          cta.template pack<T>(high[0], high[1]), cta.template pack<T>(high[2], high[3])};
      RUNTIME_UNROLL
      for (int part = 0; part < parts; part += 2) {
        Fragment right;
        cta.load_transposed(right, tile_rows + (step * 16 + lane / 8 % 2 * 8 + lane % 8) * width +
                                       part * 8 + lane / 16 * 8);
        cta.template mma<T>(sums[part], left, right[0], right[1]);
        cta.template mma<T>(sums[part + 1], left, right[2], right[3]);
      }
    }
  }

  // Stores rows g and g + 8 of a warp's 16, from `first` on, each times its `factor`; skips rows
  // from `end` on.
  template <class Cta>
  static RUNTIME_PORTABLE void store(const Cta& cta, const Sums (&sums)[parts],
                                     const float (&factor)[2], Index first, Index end,
                                     const HeadRows<T>& rows) {
    const int lane = cta.thread() % 32;
    RUNTIME_UNROLL
    for (int half = 0; half < 2; ++half) {
      const Index row = first + lane / 4 + 8 * half;
      if (row >= end) continue;
      RUNTIME_UNROLL
      for (int part = 0; part < parts; ++part) {
        T* to = rows.first + row * rows.step + part * 8 + lane % 4 * 2;
        to[0] = T(sums[part][2 * half] * factor[half]);
        to[1] = T(sums[part][2 * half + 1] * factor[half]);
      }
    }
  }
};

// The shapes that all three kernels share: the qkv tensor, and which keys a query sees.
struct FlashShape {
  cpu::HeadLayout layout;
  bool causal;
  float scale;
  // Of a tile's keys from `key` on, how many a query sees: they are the first.
  RUNTIME_PORTABLE int keys_seen(Index query, Index key) const {
    const Index end = causal && query < layout.s ? query + 1 : layout.s;
    return within_tile(end - key);
  }
  // Of a tile's queries from `query` on, how many do not see a key, which are the first, and how
  // many there are.
  RUNTIME_PORTABLE int queries_before(Index query, Index key) const {
    return causal ? within_tile(key - query) : 0;
  }
  RUNTIME_PORTABLE int queries_there(Index query) const { return within_tile(layout.s - query); }
  static RUNTIME_PORTABLE int within_tile(Index count) {
    return count < 0 ? 0 : count < flash_tile ? static_cast<int>(count) : flash_tile;
  }
  constexpr Index tiles() const { return (layout.s + flash_tile - 1) / flash_tile; }
  constexpr Index heads() const { return layout.sequences * layout.heads; }
  constexpr Index kv_heads() const { return layout.sequences * layout.kv_heads; }
  // The rows of one head in `all`, a tensor laid out like qkv, by index among all sequences' heads.
  template <class T>
  constexpr HeadRows<T> queries(T* all, Index head) const {
    return {all + layout.query(head / layout.heads, head % layout.heads), layout.columns()};
  }
  template <class T>
  constexpr HeadRows<T> keys(T* all, Index kv_head) const {
    return {all + layout.key(kv_head / layout.kv_heads, kv_head % layout.kv_heads),
            layout.columns()};
  }
  template <class T>
  constexpr HeadRows<T> values(T* all, Index kv_head) const {
    return {all + layout.value(kv_head / layout.kv_heads, kv_head % layout.kv_heads),
            layout.columns()};
  }
  template <class T>
  constexpr HeadRows<T> context(T* all, Index head) const {
    return {all + head / layout.heads * layout.s * layout.context_columns() +
                head % layout.heads * layout.head_dim,
            layout.context_columns()};
  }
  // Offset in [tokens, heads].
  constexpr Index figure(Index head, Index row) const {
    return (head / layout.heads * layout.s + row) * layout.heads + head % layout.heads;
  }
  constexpr Index kv_head_of(Index head) const {
    return head / layout.heads * layout.kv_heads + head % layout.heads / layout.share();
  }
};

}  // namespace runtime::kernels
