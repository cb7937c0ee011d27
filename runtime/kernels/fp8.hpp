// Casts a tensor for an fp8 product: first its largest magnitude, then its scale, then, in one
// pass, its codes in the original layout, transposed, or both.
#pragma once

#include <cstring>

#include "runtime/backend/fp8_scale.hpp"
#include "runtime/kernels/portable.hpp"
#include "runtime/kernels/product.hpp"

namespace runtime::kernels {

// On Hopper cuBLASLt's fp8 products require both operands contiguous along the inner dimension, and
// every dimension and address a multiple of 16 (cuBLAS, cublasLtMatmul); other products run in 16
// bits.
constexpr Index fp8_multiple = 16;

// From a tensor's scale to its inverse, and to the next tensor's scale: cublasLtMatmul takes an
// inverse on 16 bytes only, and answers NOT_SUPPORTED for another (seen with cuBLASLt 13.1 on an
// H200; its documentation does not say so).
constexpr Index scale_step = 16 / sizeof(float);

inline bool fits_fp8(Index rows, Index cols, const void* values) {
  return rows % fp8_multiple == 0 && cols % fp8_multiple == 0 &&
         reinterpret_cast<std::uintptr_t>(values) % 16 == 0;
}

// Values that one instruction loads or stores.
template <class T, int Count>
struct alignas(sizeof(T) * Count) Pack {
  T of[Count];
};

template <int Count, class T>
RUNTIME_PORTABLE Pack<T, Count> load_pack(const T* from) {
  Pack<T, Count> pack;
  std::memcpy(&pack, __builtin_assume_aligned(from, alignof(Pack<T, Count>)), sizeof pack);
  return pack;
}

template <int Count, class T>
RUNTIME_PORTABLE void store_pack(T* to, const Pack<T, Count>& pack) {
  std::memcpy(__builtin_assume_aligned(to, alignof(Pack<T, Count>)), &pack, sizeof pack);
}

RUNTIME_PORTABLE float magnitude(float x) { return x < 0 ? -x : x; }

// The largest magnitude of each `part` elements; NaN is ignored.
template <class T>
struct LargestOfParts {  // rows: parts_of(count), of `part` elements
  static constexpr Index part = 4096;
  static constexpr int pack = 8;
  static constexpr Index parts_of(Index count) { return (count + part - 1) / part; }
  Index count;  // a multiple of 8
  const T* x;
  float* largest;
  template <class Team>
  RUNTIME_PORTABLE void operator()(const Team& team, Index row) const {
    const Index end = row * part + part < count ? row * part + part : count;
    float most = 0;
    for (Index i = row * part + team.rank() * pack; i < end; i += Index{pack} * team.size()) {
      const Pack<T, pack> values = load_pack<pack>(x + i);
      for (const T value : values.of) most = larger(magnitude(value), most);
    }
    most = team.max(most);
    if (team.rank() == 0) largest[row] = most;
  }
};

// Writes the tensor's scale and its inverse, which the product multiplies codes with.
template <class Format>
struct ScaleOfParts {  // rows: 1, of `parts` elements
  Index parts;
  const float* largest;
  float* scale;  // and, scale_step behind it, its inverse
  template <class Team>
  RUNTIME_PORTABLE void operator()(const Team& team, Index) const {
    float most = 0;
    for (Index i = team.rank(); i < parts; i += team.size()) most = larger(largest[i], most);
    most = team.max(most);
    if (team.rank() != 0) return;
    scale[0] = fp8_scale<Format>(most);
    scale[scale_step] = 1 / scale[0];
  }
};

// Casts x[rows, cols] to codes. One element of the kernel is 16 rows x 4 columns: per row it reads
// 8 bytes and writes 4, and per column of the transpose it writes 16, contiguous with its
// neighbours'.
template <class T, class Format>
struct CastTo {  // count: elements()
  static constexpr int high = 16, wide = 4;
  Index rows, cols;  // multiples of 16
  const T* x;
  const float* scale;
  Format* codes;       // [rows, cols], or null
  Format* transposed;  // [cols, rows], or null
  constexpr Index elements() const { return rows / high * (cols / wide); }
  RUNTIME_PORTABLE void operator()(Index i) const {
    const Index row = i / (cols / wide) * high, col = i % (cols / wide) * wide;
    const float s = *scale;
    Pack<std::uint8_t, high> turned[wide];
    RUNTIME_UNROLL
    for (int r = 0; r < high; ++r) {
      const Index at = (row + r) * cols + col;
      const Pack<T, wide> in = load_pack<wide>(x + at);
      Pack<std::uint8_t, wide> out;
      RUNTIME_UNROLL
      for (int c = 0; c < wide; ++c)
        out.of[c] = turned[c].of[r] = Format(float(in.of[c]) * s).bits();
      if (codes != nullptr) store_pack(bytes_of(codes + at), out);
    }
    if (transposed == nullptr) return;
    RUNTIME_UNROLL
    for (int c = 0; c < wide; ++c)
      store_pack(bytes_of(transposed + (col + c) * rows + row), turned[c]);
  }
  static RUNTIME_PORTABLE std::uint8_t* bytes_of(Format* codes) {
    return reinterpret_cast<std::uint8_t*>(codes);
  }
};

// A matrix of fp8 codes, and the device address of the inverse scale of each.
template <class Format>
struct Codes {
  const Format* codes;
  const float* scale;
};

}  // namespace runtime::kernels
