// The backward of attention on tensor cores; both kernels recompute the scores.
#pragma once

#include "runtime/kernels/flash.hpp"
#include "runtime/kernels/rows.hpp"

namespace runtime::kernels {

// levels[tokens, heads] = sum(dout · out) over each row of a head (D in the paper).
template <class T>
struct FlashLevels {  // count: tokens · heads
  Index head_dim;
  const T* out;
  const T* dout;
  float* levels;
  template <class Team>
  RUNTIME_PORTABLE void operator()(const Team& team, Index row) const {
    float sum = 0;
    for_columns(team, head_dim, [&](Index col) {
      sum += float(out[row * head_dim + col]) * float(dout[row * head_dim + col]);
    });
    sum = team.sum(sum);
    if (team.rank() == 0) levels[row] = sum;
  }
};

template <class T>
struct FlashGradientInputs {
  FlashShape shape;
  const T* qkv;
  const T* dout;             // [tokens, heads · D]
  const float* log_sum_exp;  // [tokens, heads]
  const float* levels;       // [tokens, heads]

  // The probability exp(score - log-sum-exp), 0 where masked, and the gradient of the score.
  RUNTIME_PORTABLE void weigh(bool seen, float figure, float level, float& score,
                              float& gradient) const {
    const float p = seen ? power_of_two((shape.scale * score - figure) * log2_of_e) : 0.0F;
    score = p;
    gradient = shape.scale * p * (gradient - level);
  }
};

// dQ. Grid: (tile of queries, head).
template <int D, class T>
struct FlashQueryGradient {
  using Tiles = FlashTiles<D, T>;
  using Element = T;  // in shared memory
  static constexpr int room = 2 * Tiles::tile;
  FlashGradientInputs<T> in;
  T* dqkv;

  template <class Cta>
  RUNTIME_PORTABLE void operator()(const Cta& cta, Index x, Index head, T* shared) const {
    const FlashShape& shape = in.shape;
    const Index tile = shape.causal ? shape.tiles() - 1 - x : x;
    const Index first = tile * flash_tile, s = shape.layout.s;
    const int own = cta.thread() / 32 * flash_warp_rows, lane = cta.thread() % 32;
    T* const key_tile = shared;
    T* const value_tile = shared + Tiles::tile;
    Fragment queries[Tiles::steps], dcontext[Tiles::steps];
    Tiles::fetch(cta, shape.queries(in.qkv, head), first, s, key_tile);
    Tiles::fetch(cta, shape.context(in.dout, head), first, s, value_tile);
    cta.sync();
    RUNTIME_UNROLL
    for (int step = 0; step < Tiles::steps; ++step) {
      Tiles::first_operand(cta, key_tile, own, step * 16, queries[step]);
      Tiles::first_operand(cta, value_tile, own, step * 16, dcontext[step]);
    }
    float figure[2] = {0, 0}, level[2] = {0, 0};
    RUNTIME_UNROLL
    for (int half = 0; half < 2; ++half) {
      const Index row = first + own + lane / 4 + 8 * half;
      if (row >= s) continue;
      figure[half] = in.log_sum_exp[shape.figure(head, row)];
      level[half] = in.levels[shape.figure(head, row)];
    }
    Sums gradient[Tiles::parts] = {};
    const Index kv_head = shape.kv_head_of(head), end = shape.causal ? tile + 1 : shape.tiles();
    for (Index k = 0; k < end; ++k) {
      cta.sync();
      Tiles::fetch(cta, shape.keys(in.qkv, kv_head), k * flash_tile, s, key_tile);
      Tiles::fetch(cta, shape.values(in.qkv, kv_head), k * flash_tile, s, value_tile);
      cta.sync();
      Sums scores[Tiles::key_parts] = {}, dscores[Tiles::key_parts] = {};
      const auto of = [](const Fragment(&all)[Tiles::steps]) {
        return [&all](int step, Fragment& to) {
          RUNTIME_UNROLL
          for (int i = 0; i < 4; ++i) to[i] = all[step][i];
        };
      };
      Tiles::multiply_rows(cta, of(queries), key_tile, scores);
      Tiles::multiply_rows(cta, of(dcontext), value_tile, dscores);
      const Index query = first + own + lane / 4;
      const int seen[2] = {shape.keys_seen(query, k * flash_tile),
                           shape.keys_seen(query + 8, k * flash_tile)};
      RUNTIME_UNROLL
      for (int part = 0; part < Tiles::key_parts; ++part) {
        RUNTIME_UNROLL
        for (int i = 0; i < 4; ++i) {
          in.weigh(part * 8 + lane % 4 * 2 + i % 2 < seen[i / 2], figure[i / 2], level[i / 2],
                   scores[part][i], dscores[part][i]);
        }
      }
      Tiles::multiply_columns(cta, dscores, key_tile, gradient);
    }
    const float one[2] = {1, 1};
    Tiles::store(cta, gradient, one, first + own, s, shape.queries(dqkv, head));
  }
};

// dK and dV. Grid: (tile of keys, key head). The query heads that share a key head are processed in
// sequence.
template <int D, class T>
struct FlashKeyGradient {
  using Tiles = FlashTiles<D, T>;
  using Element = T;  // in shared memory
  // Shared memory: tiles of keys, values, queries, dout; and two floats per query.
  static constexpr int room = 4 * Tiles::tile + 4 * flash_tile;
  // Queries whose scores are held at once. With D = 128 the gradients of keys and values take 128
  // of a thread's 255 registers, and the scores of a whole tile do not fit beside them.
  static constexpr int together = D > 64 ? flash_tile / 4 : flash_tile;
  FlashGradientInputs<T> in;
  T* dqkv;

  template <class Cta>
  RUNTIME_PORTABLE void operator()(const Cta& cta, Index tile, Index kv_head, T* shared) const {
    const FlashShape& shape = in.shape;
    const cpu::HeadLayout& l = shape.layout;
    const Index first = tile * flash_tile;
    const int own = cta.thread() / 32 * flash_warp_rows;
    Tiles::fetch(cta, shape.keys(in.qkv, kv_head), first, l.s, shared);
    Tiles::fetch(cta, shape.values(in.qkv, kv_head), first, l.s, shared + Tiles::tile);
    Sums of_keys[Tiles::parts] = {}, of_values[Tiles::parts] = {};
    for (Index member = 0; member < l.share(); ++member) {
      const Index head = kv_head / l.kv_heads * l.heads + kv_head % l.kv_heads * l.share() + member;
      for (Index q = shape.causal ? tile : 0; q < shape.tiles(); ++q)
        attend(cta, head, q * flash_tile, first + own, own, shared, of_keys, of_values);
    }
    const float one[2] = {1, 1};
    Tiles::store(cta, of_keys, one, first + own, l.s, shape.keys(dqkv, kv_head));
    Tiles::store(cta, of_values, one, first + own, l.s, shape.values(dqkv, kv_head));
  }

 private:
  template <class Cta>
  RUNTIME_PORTABLE void attend(const Cta& cta, Index head, Index query, Index key, int own,
                               T* shared, Sums (&of_keys)[Tiles::parts],
                               Sums (&of_values)[Tiles::parts]) const {
    const FlashShape& shape = in.shape;
    T* const query_tile = shared + 2 * Tiles::tile;
    T* const dout_tile = shared + 3 * Tiles::tile;
    float* const figures = reinterpret_cast<float*>(shared + 4 * Tiles::tile);
    float* const levels = figures + flash_tile;
    cta.sync();
    Tiles::fetch(cta, shape.queries(in.qkv, head), query, shape.layout.s, query_tile);
    Tiles::fetch(cta, shape.context(in.dout, head), query, shape.layout.s, dout_tile);
    if (cta.thread() < flash_tile) {
      const Index row = query + cta.thread();
      const bool there = row < shape.layout.s;
      figures[cta.thread()] = there ? in.log_sum_exp[shape.figure(head, row)] : 0.0F;
      levels[cta.thread()] = there ? in.levels[shape.figure(head, row)] : 0.0F;
    }
    cta.sync();
    RUNTIME_NO_UNROLL
    for (int first = 0; first < flash_tile; first += together)
      attend_some(cta, query, key, own, first, shared, of_keys, of_values);
  }

  // The same for `together` queries of the tile, from `first` on.
  template <class Cta>
  RUNTIME_PORTABLE void attend_some(const Cta& cta, Index query, Index key, int own, int first,
                                    const T* shared, Sums (&of_keys)[Tiles::parts],
                                    Sums (&of_values)[Tiles::parts]) const {
    const FlashShape& shape = in.shape;
    const int lane = cta.thread() % 32;
    const T* const queries = shared + 2 * Tiles::tile + first * Tiles::width;
    const T* const dout = shared + 3 * Tiles::tile + first * Tiles::width;
    const float* const figures = reinterpret_cast<const float*>(shared + 4 * Tiles::tile);
    const float* const levels = figures + flash_tile;
    // Transposed: rows are keys, columns queries.
    Sums scores[together / 8] = {}, dscores[together / 8] = {};
    const auto rows_of = [&](const T* tile_rows) {
      return [&cta, tile_rows, own](int step, Fragment& to) {
        Tiles::first_operand(cta, tile_rows, own, step * 16, to);
      };
    };
    Tiles::multiply_rows(cta, rows_of(shared), queries, scores);
    Tiles::multiply_rows(cta, rows_of(shared + Tiles::tile), dout, dscores);
    const int before[2] = {shape.queries_before(query, key + lane / 4),
                           shape.queries_before(query, key + lane / 4 + 8)};
    const int there = shape.queries_there(query);
    RUNTIME_UNROLL
    for (int part = 0; part < together / 8; ++part) {
      RUNTIME_UNROLL
      for (int i = 0; i < 4; ++i) {
        const int column = first + part * 8 + lane % 4 * 2 + i % 2;
        in.weigh(column >= before[i / 2] && column < there, figures[column], levels[column],
                 scores[part][i], dscores[part][i]);
      }
    }
    Tiles::multiply_columns(cta, scores, dout, of_values);
    Tiles::multiply_columns(cta, dscores, queries, of_keys);
  }
};

}  // namespace runtime::kernels
