// Dropout with the counter-based generator of runtime/cpu/dropout.hpp: it drops the same elements.
// Works on four elements at a time, which one block of random numbers covers when rows begin at
// multiples of four.
#pragma once

#include "runtime/cpu/dropout.hpp"
#include "runtime/cpu/random.hpp"
#include "runtime/kernels/portable.hpp"

namespace runtime::kernels {

inline constexpr Index quad = 4;

// The parameters of dropout on a tensor [rows, cols].
struct DropoutDraw {
  cpu::DropoutKey key;
  std::uint64_t lowest_kept;  // threshold of a 32-bit random word; 0: keep all
  float scale;                // 1 / (1 - p)
};

inline DropoutDraw dropout_draw(const cpu::DropoutKey& key, double p) {
  return {key, static_cast<std::uint64_t>(p * 4294967296.0), static_cast<float>(1 / (1 - p))};
}

// words[i], without an index that would move the words from registers to local memory.
RUNTIME_PORTABLE std::uint32_t word_of(const cpu::PhiloxCounter& words, std::uint64_t i) {
  const std::uint32_t low = i % 2 == 0 ? words[0] : words[1];
  const std::uint32_t high = i % 2 == 0 ? words[2] : words[3];
  return i % 4 < 2 ? low : high;
}

// Calls visit(element, kept) for elements [quad · i, quad · (i + 1)) below rows · cols.
template <class Visit>
RUNTIME_PORTABLE void draw_quad(const DropoutDraw& draw, Index rows, Index cols, Index i,
                                Visit visit) {
  std::uint64_t drawn = ~std::uint64_t{0};  // index of the block in `words`
  cpu::PhiloxCounter words{};
  const Index end = rows * cols < quad * (i + 1) ? rows * cols : quad * (i + 1);
  for (Index at = quad * i; at < end; ++at) {
    const Index row = draw.key.first_row + at / cols, col = draw.key.first_col + at % cols;
    const auto index = static_cast<std::uint64_t>(row * draw.key.global_cols + col);
    if (index / 4 != drawn) {
      drawn = index / 4;
      words = cpu::random_block(draw.key.seed, draw.key.stream, drawn);
    }
    visit(at, word_of(words, index) >= draw.lowest_kept);
  }
}

inline Index quads(Index elements) { return (elements + quad - 1) / quad; }

template <class T>
struct DropoutForward {  // count: quads(rows · cols)
  Index rows, cols;
  DropoutDraw draw;
  const T* x;
  T* y;
  std::uint8_t* mask;
  RUNTIME_PORTABLE void operator()(Index i) const {
    const DropoutForward own = *this;
    draw_quad(draw, rows, cols, i, [own](Index at, bool kept) {
      own.mask[at] = kept ? 1 : 0;
      own.y[at] = kept ? T(float(own.x[at]) * own.draw.scale) : T(0.0F);
    });
  }
};

// dx may be dy.
template <class T>
struct DropoutGradient {  // count: elements
  float scale;
  const T* dy;
  const std::uint8_t* mask;
  T* dx;
  RUNTIME_PORTABLE void operator()(Index i) const {
    dx[i] = mask[i] != 0 ? T(float(dy[i]) * scale) : T(0.0F);
  }
};

// y = skip + dropout(x + bias); bias may be null.
template <class T>
struct BiasDropoutAddForward {  // count: quads(rows · cols)
  Index rows, cols;
  DropoutDraw draw;
  const T* x;
  const T* bias;
  const T* skip;
  T* y;
  std::uint8_t* mask;
  RUNTIME_PORTABLE void operator()(Index i) const {
    const BiasDropoutAddForward own = *this;
    draw_quad(draw, rows, cols, i, [own](Index at, bool kept) {
      const float sum = own.bias == nullptr ? float(own.x[at])
                                            : float(own.x[at]) + float(own.bias[at % own.cols]);
      own.mask[at] = kept ? 1 : 0;
      own.y[at] = T(float(own.skip[at]) + (kept ? sum * own.draw.scale : 0.0F));
    });
  }
};

// The same without dropout.
template <class T>
struct BiasAddForward {  // count: rows · cols
  Index cols;
  const T* x;
  const T* bias;
  const T* skip;
  T* y;
  RUNTIME_PORTABLE void operator()(Index i) const {
    const float sum = bias == nullptr ? float(x[i]) : float(x[i]) + float(bias[i % cols]);
    y[i] = T(float(skip[i]) + sum);
  }
};

}  // namespace runtime::kernels
