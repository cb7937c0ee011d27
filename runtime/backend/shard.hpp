// Splits a number of elements into nearly equal shards.
#pragma once

#include <algorithm>
#include <cstddef>

namespace runtime {

// Shard `index` of `count` elements split into `parts`: sizes differ by at most one, larger ones
// first.
struct Chunk {
  std::size_t begin = 0, size = 0;
};

constexpr Chunk chunk_of(std::size_t count, int parts, int index) {
  const auto n = static_cast<std::size_t>(parts), i = static_cast<std::size_t>(index);
  const std::size_t whole = count / n, larger = count % n;
  return {i * whole + std::min(i, larger), whole + (i < larger ? 1 : 0)};
}

}  // namespace runtime
