// A rank's cached keys and values: blocks of tokens, which sequences take one by one as they grow,
// and the table of each sequence's blocks (PagedAttention, Kwon et al. 2023, arXiv:2309.06180).
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/backend/arena.hpp"
#include "runtime/cpu/cached_attention.hpp"

namespace runtime {

struct CacheShape {
  std::int64_t layers = 1;  // of the stage
  std::int64_t sequences = 1;
  std::int64_t tokens = 1;  // of a sequence, at most
  std::int64_t block_size = 16;
  std::int64_t elements = 0;  // of a block in one layer
};

class KvCache {
 public:
  // The arena outlives this. Nothing is allocated yet.
  KvCache(const CacheShape& shape, Arena& arena);

  // Takes the blocks that `count` sequences from `first` lack for `tokens` tokens each. Throws
  // OutOfMemory.
  void hold(std::int64_t first, std::int64_t count, std::int64_t tokens);
  // Those sequences in one layer, of which `before` tokens are cached.
  cpu::CachedKeys of(std::int64_t layer, std::int64_t first, std::int64_t count,
                     std::int64_t before) const;
  void clear();  // gives all blocks back

 private:
  std::int64_t blocks_each() const;

  CacheShape shape_;
  Arena& arena_;
  std::vector<Block> blocks_;
  std::vector<float*> table_;  // [layers][sequences][blocks_each]; null: not taken
};

}  // namespace runtime
