// The launch configurations of the kernels: blocks, and threads per block.
#pragma once

#include <algorithm>
#include <cstdint>

namespace runtime::cuda {

struct LaunchShape {
  unsigned blocks, threads;
};

inline constexpr int warp = 32;
inline constexpr int element_threads = 256;
inline constexpr int most_threads =
    1024;  // per block, on every GPU; 64 registers are left for each
inline constexpr std::int64_t most_blocks = 1 << 20;  // kernels loop over the rest (grid stride)

constexpr unsigned blocks_for(std::int64_t count, std::int64_t in_a_block) {
  const std::int64_t blocks = (count + in_a_block - 1) / in_a_block;
  return static_cast<unsigned>(std::clamp<std::int64_t>(blocks, 1, most_blocks));
}

// One thread per element.
constexpr LaunchShape element_shape(std::int64_t count) {
  return {blocks_for(count, element_threads), element_threads};
}

// Rows up to this width take one warp each, four per block; wider rows take a block each.
inline constexpr std::int64_t warp_width = 1024;
inline constexpr int rows_of_block = 4;

constexpr bool row_is_warps(std::int64_t width) { return width <= warp_width; }

constexpr LaunchShape row_shape(std::int64_t rows, std::int64_t width) {
  if (row_is_warps(width)) return {blocks_for(rows, rows_of_block), rows_of_block * warp};
  return {blocks_for(rows, 1), width <= 4096 ? 256U : unsigned{most_threads}};
}

// 32 columns per block; its warps share their rows, and `slices` blocks the rows of the same
// columns, so that few columns fill a GPU too: as many as make this number of blocks, which is two
// rounds of the 528 that an H100 holds at once, if 128 rows are left to each. Sixteen warps, as
// twice as many leave a thread too few registers.
inline constexpr int column_warps = 16;
inline constexpr std::int64_t column_blocks = 1056;
inline constexpr std::int64_t most_column_parts = 2 * column_blocks * warp;

struct ColumnShape {
  unsigned blocks, slices, threads;
};

constexpr ColumnShape column_shape(std::int64_t rows, std::int64_t cols) {
  const unsigned blocks = blocks_for(cols, warp);
  const std::int64_t wanted = (column_blocks + blocks - 1) / blocks;
  const std::int64_t slices = std::clamp<std::int64_t>(rows / 128, 1, wanted);
  return {blocks, static_cast<unsigned>(slices), column_warps * warp};
}

// The largest power of two, at most 256, that divides an address in bytes; cuBLASLt's heuristic
// needs it to choose an algorithm.
constexpr std::uint32_t alignment_of(std::uint64_t bytes) {
  const std::uint64_t lowest = bytes & (~bytes + 1);
  return lowest == 0 || lowest > 256 ? 256U : static_cast<std::uint32_t>(lowest);
}

}  // namespace runtime::cuda
