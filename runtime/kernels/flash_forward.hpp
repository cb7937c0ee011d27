// The forward of attention on tensor cores.
#pragma once

#include "runtime/kernels/flash.hpp"

namespace runtime::kernels {

// Grid: (tile of queries, head).
template <int D, class T>
struct FlashForward {
  using Tiles = FlashTiles<D, T>;
  using Element = T;  // in shared memory
  static constexpr int room = 2 * Tiles::tile;
  FlashShape shape;
  const T* qkv;
  T* out;              // [tokens, heads · D]
  float* log_sum_exp;  // [tokens, heads]

  template <class Cta>
  RUNTIME_PORTABLE void operator()(const Cta& cta, Index x, Index head, T* shared) const {
    const Index tile = shape.causal ? shape.tiles() - 1 - x : x;  // the longest first
    const Index first = tile * flash_tile, s = shape.layout.s;
    const Index own = cta.thread() / 32 * flash_warp_rows;  // the warp's rows of the tile
    T* const key_tile = shared;
    T* const value_tile = shared + Tiles::tile;
    Fragment queries[Tiles::steps];
    Tiles::fetch(cta, shape.queries(qkv, head), first, s, key_tile);
    cta.sync();
    RUNTIME_UNROLL
    for (int step = 0; step < Tiles::steps; ++step)
      Tiles::first_operand(cta, key_tile, static_cast<int>(own), step * 16, queries[step]);
    Sums context[Tiles::parts] = {};
    float most[2] = {lowest_float, lowest_float}, sum[2] = {0, 0};
    const Index kv_head = shape.kv_head_of(head), end = shape.causal ? tile + 1 : shape.tiles();
    for (Index k = 0; k < end; ++k) {
      cta.sync();  // the previous tile has been read
      Tiles::fetch(cta, shape.keys(qkv, kv_head), k * flash_tile, s, key_tile);
      Tiles::fetch(cta, shape.values(qkv, kv_head), k * flash_tile, s, value_tile);
      cta.sync();
      Sums scores[Tiles::key_parts] = {};
      Tiles::multiply_rows(
          cta,
          [&](int step, Fragment& to) {
            RUNTIME_UNROLL
            for (int i = 0; i < 4; ++i) to[i] = queries[step][i];
          },
          key_tile, scores);
      weigh(cta, first + own, k * flash_tile, scores, most, sum, context);
      Tiles::multiply_columns(cta, scores, value_tile, context);
    }
    finish(cta, head, first + own, most, sum, context);
  }

 private:
  // Online softmax: scores become exponentials relative to the largest of their row so far, and
  // earlier sums are rescaled to it. Row maxima and sums are in base 2.
  template <class Cta>
  RUNTIME_PORTABLE void weigh(const Cta& cta, Index query, Index key,
                              Sums (&scores)[Tiles::key_parts], float (&most)[2], float (&sum)[2],
                              Sums (&context)[Tiles::parts]) const {
    const int lane = cta.thread() % 32;
    const float scale = shape.scale * log2_of_e;
    RUNTIME_UNROLL
    for (int half = 0; half < 2; ++half) {
      const Index row = query + lane / 4 + 8 * half;
      const int seen = shape.keys_seen(row, key);
      float largest = most[half];
      RUNTIME_UNROLL
      for (int part = 0; part < Tiles::key_parts; ++part) {
        RUNTIME_UNROLL
        for (int i = 2 * half; i < 2 * half + 2; ++i) {
          float& score = scores[part][i];
          score = part * 8 + lane % 4 * 2 + i % 2 < seen ? scale * score : lowest_float;
          largest = larger(largest, score);
        }
      }
      for (int apart = 1; apart <= 2; ++apart)
        largest = larger(largest, cta.exchange(largest, apart));
      const float shrink = power_of_two(most[half] - largest);
      float more = 0;
      RUNTIME_UNROLL
      for (int part = 0; part < Tiles::key_parts; ++part) {
        RUNTIME_UNROLL
        for (int i = 2 * half; i < 2 * half + 2; ++i) {
          scores[part][i] = power_of_two(scores[part][i] - largest);
          more += scores[part][i];
        }
      }
      RUNTIME_UNROLL
      for (int part = 0; part < Tiles::parts; ++part) {
        context[part][2 * half] *= shrink;
        context[part][2 * half + 1] *= shrink;
      }
      sum[half] = sum[half] * shrink + more;  // over this lane's columns
      most[half] = largest;
    }
  }

  template <class Cta>
  RUNTIME_PORTABLE void finish(const Cta& cta, Index head, Index query, const float (&most)[2],
                               float (&sum)[2], const Sums (&context)[Tiles::parts]) const {
    const int lane = cta.thread() % 32;
    float inverse[2];
    RUNTIME_UNROLL
    for (int half = 0; half < 2; ++half) {
      for (int apart = 1; apart <= 2; ++apart) sum[half] += cta.exchange(sum[half], apart);
      inverse[half] = 1 / sum[half];
      const Index row = query + lane / 4 + 8 * half;
      if (lane % 4 == 0 && row < shape.layout.s)
        log_sum_exp[shape.figure(head, row)] = most[half] * ln_2 + logarithm(sum[half]);
    }
    Tiles::store(cta, context, inverse, query, shape.layout.s, shape.context(out, head));
  }
};

}  // namespace runtime::kernels
